package train

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/travel"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// preparing is a peer before it trains. The members may have to agree by sums on the preparation of table rows, which
// decides the layout of the model, or on the normalization of pictures. Then the peer becomes a node of the run before
// it trains, and the same node trains afterwards.
type preparing struct {
	*settings.Settings
	Observer
	network   peer.Network
	duties    *duties
	share     rows.Share
	prepared  *prepare.Prepared
	node      *peer.Node    // nil if this peer prepares without others
	announced []string      // addresses to join that were reported
	taker     *travel.Taker // nil unless the peer trains on rows of holders
}

// work makes the workload. The caller closes the node, if there is one, after an error, too.
func (p *preparing) work(ctx context.Context, self ed25519.PublicKey) (work *workload.Workload, err error) {
	switch {
	case p.EndsStay && p.TrainOnly:
		work, err = between(p)
	case p.TrainOnly:
		work, err = ofHolders(ctx, p)
	case p.Begins():
		if work, err = begins(ctx, p, self); err == nil && work == nil {
			work, err = p.ofTable(ctx, self)
		}
	case p.IsTable():
		work, err = p.ofTable(ctx, self)
	default:
		work, err = p.ofPictures(ctx, self)
	}
	if err == nil && !p.TrainOnly {
		err = p.describe(ctx, work.Data)
	}
	if err != nil && work != nil {
		err = errors.Join(err, work.Batches.Close())
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ErrNothingDone
	case err != nil:
		return nil, rows.Remedied(err)
	}
	return work, nil
}

// describe completes the description of the run, together with those that have prepared data with this peer. So all begin to train
// together; otherwise the first could finish before the others begin.
func (p *preparing) describe(ctx context.Context, data *dataset.Data) (err error) {
	if p.node != nil {
		p.MinPeers, err = p.node.Describe(ctx, "described", rundescription.Of(*p.Settings, data).Fields)
		p.Described, err = p.node.Description(), tooLate(err)
	}
	return err
}

// ofTable makes the workload for a table.
func (p *preparing) ofTable(ctx context.Context, self ed25519.PublicKey) (*workload.Workload, error) {
	data, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	p.tell(data.Shape().Values())
	work, err := workload.OfTable(*p.Settings, p.share, p.prepared, data, self)
	return work, cli.Config(err)
}

// ofPictures makes the workload for pictures or a text.
func (p *preparing) ofPictures(ctx context.Context, self ed25519.PublicKey) (*workload.Workload, error) {
	if err := p.normalize(ctx); err != nil {
		return nil, err
	}
	work, err := workload.Prepare(ctx, *p.Settings, self)
	return work, cli.Config(err)
}

// run reads this peer's rows and prepares them. A peer that only trains has none: it takes part in preparing those of the
// others, unless that is done, and returns nil.
func (p *preparing) run(ctx context.Context) (data *dataset.Data, err error) {
	if p.TrainOnly && p.Preparation != "" {
		return nil, nil
	}
	source := p.Source
	if source == nil && !p.TrainOnly {
		if source, err = rows.Open(ctx, p.Rows(), true); err != nil {
			return nil, err
		}
	}
	if p.share, err = workload.ShareOf(*p.Settings, source); err != nil {
		return nil, err
	}
	if p.prepared, err = p.known(); err != nil {
		return nil, err
	}
	switch {
	case p.prepared != nil && p.TrainOnly:
		return nil, nil
	case p.prepared != nil:
		if p.Table.ShareRows > 0 {
			p.Log.Warn("--share-rows is of peers that begin together: this one, whose rows are prepared by a file, trains on its own")
		}
		own, err := p.share.Take(ctx, p.prepared)
		if err != nil {
			return nil, err
		}
		return p.share.Data(ctx, p.prepared, own)
	case p.Strategy == settings.StrategyAlone:
		return p.fit(ctx, table.Alone{})
	}
	err = p.together(ctx, func(flock table.Flock) (err error) {
		data, err = p.fit(ctx, flock)
		return err
	})
	return data, err
}

// tell reports how many rows train, and which rows and columns were left out.
func (p *preparing) tell(inputs int) {
	files := p.share.Files
	said := fmt.Sprintf("%d rows train as %d numbers each", p.prepared.Rows, inputs)
	if missing := p.prepared.Labels.Missing; missing > 0 {
		said += fmt.Sprintf("; %d are left out, of which %s is missing", missing, p.prepared.Labels.Target.Column)
	}
	if out := rows.LeftOut(p.prepared, files.Schema(), p.Table.Drop...); len(out) > 0 {
		said += "; " + rows.LeftOutNote(out, p.Table.MaxValues)
	}
	for _, line := range append(p.share.ColumnNotes(p.Table.Drop), said, strings.TrimSpace(files.Damaged().String())) {
		if line != "" {
			p.Tell(watch.Report{Kind: watch.ReportNews, Said: line})
		}
	}
}

// known reads the preparation of rows from the pipeline file; nil if it was not found before.
func (p *preparing) known() (*prepare.Prepared, error) {
	path := p.PipelineFile()
	if path != "" {
		known, err := rows.ReadPrepared(path)
		if err == nil {
			return known, p.check(path, known)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Config(err)
		}
	}
	if p.Preparation != "" {
		return nil, cli.Usage(cli.Faultf("pipeline", "is missing: the run that is joined trains already, on rows that its members have prepared (%s). Copy the file that one of them has by --pipeline, or as pipeline.json beside its checkpoints, and give it; or begin a run anew with --min-peers, so that all prepare together", p.Preparation))
	}
	return nil, nil
}

// check checks that a pipeline file belongs to this run and to this target.
func (p *preparing) check(path string, known *prepare.Prepared) error {
	hash, err := rows.Hash(known)
	if err != nil {
		return err
	}
	target, _ := table.ParseTarget(p.Table.Target) // faults has checked it
	switch {
	case p.Preparation != "" && p.Preparation != hash:
		return cli.Usage(cli.Faultf("pipeline", "%s is of rows that were prepared otherwise (%s) than those of the run that is joined (%s): copy the file that its members have", path, hash, p.Preparation))
	case known.Labels.Target != target:
		return cli.Usage(cli.Faultf("pipeline", "%s is of the target %s, not of %s: give another file, or none", path, known.Labels.Target, target))
	}
	p.Preparation = hash
	return nil
}

// together joins the run as a node, and calls agree to agree with the other members.
func (p *preparing) together(ctx context.Context, agree func(table.Flock) error) (err error) {
	joining := rows.Joining{Settings: *p.Settings, Network: p.network, Together: p.Begin != nil, Started: p.started}
	joining.Network.Description = rundescription.Of(*p.Settings, nil).Fields
	switch _, parts, _ := p.PartOf(); {
	case p.Begin != nil && !p.Hold && !p.TrainOnly: // local starts one peer for each part
		joining.MinPeers = max(parts, 1)
	case len(p.Join) > 0:
		joining.MinPeers = max(p.MinPeers, 2)
	}
	if p.node, err = joining.Join(ctx); err != nil {
		return err
	}
	return tooLate(agree(p.node))
}

// tooLate adds a remedy to the error of a peer that came while the others were preparing.
func tooLate(err error) error {
	if errors.Is(err, peer.ErrSumOver) {
		return fmt.Errorf("preparing the data with the others: %w: they may have done so by now: start this peer again", err)
	}
	return err
}

// started reports the addresses and the token by which others join.
func (p *preparing) started(node *peer.Node) {
	p.announced = node.JoinAddresses()
	r := watch.Report{Kind: watch.ReportStarted, Peer: string(node.Self()), Addresses: p.announced, Token: tokenOf(*p.Settings, node), Keyed: p.Keyed()}
	if p.MinPeers > 1 && p.ModelStages() == 1 && (p.IsTable() || !p.Hold && !p.TrainOnly) {
		r.Said = fmt.Sprintf("waiting until %d peers are here, to prepare the data together", p.MinPeers)
	}
	p.Tell(r)
}

// fit agrees with the flock on the preparation of the rows, and prepares them.
func (p *preparing) fit(ctx context.Context, flock table.Flock) (*dataset.Data, error) {
	prepared, own, err := p.share.ForModel(ctx, flock, p.share.Table.Shared())
	if err != nil {
		return nil, err
	}
	var data *dataset.Data
	if !p.TrainOnly {
		data, err = p.share.Data(ctx, prepared, own)
	}
	if err := table.Ready(ctx, flock, "fit/prepared", err); err != nil { // waits, so that all begin to train together
		return nil, err
	}
	if data != nil {
		if data.Train, err = p.share.Spread(ctx, flock, data.Train); err != nil {
			return nil, err
		}
	}
	p.prepared = prepared
	p.Preparation, err = rows.Hash(prepared)
	return data, err
}

// accuracyOf is the figure of one peer, NaN (unknown) after an error.
func accuracyOf(figure float64, err error) result.Accuracy {
	if err != nil {
		figure = math.NaN()
	}
	return result.AccuracyOf(figure)
}

package train

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/metrics"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/travel"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	holding "github.com/seed-97356399/murmuration/peer/rows"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// travels are the rows of a peer that come from others, or go to them.
type travels struct {
	taker  *travel.Taker   // nil unless the peer trains on rows of holders
	holder *holding.Holder // nil unless the peer gives the rows on which it trains
	duties *duties
}

// joinWith makes the peer a member that does not train yet, and reports how others join.
func joinWith(ctx context.Context, p *preparing, data *dataset.Data) (err error) {
	p.network.Description = rundescription.Of(*p.Settings, data).Fields
	if p.node, err = peer.Join(ctx, p.network); err != nil {
		return cli.ConfigOf(settings.Remedied(err), settings.Unusable...)
	}
	p.started(p.node)
	return nil
}

// held loads the data that this peer holds for others, and makes the peer a member.
func held(ctx context.Context, p *preparing, self ed25519.PublicKey) (data travel.Data, err error) {
	if p.IsTable() {
		if data.Data, err = p.run(ctx); err == nil {
			p.tell(data.Shape().Values())
			err = p.describe(ctx, data.Data)
		}
		if data.Prepared = p.prepared; err == nil {
			err = (&workload.Workload{Prepared: p.prepared}).Keep(p.PipelineFile())
		}
		err = rows.Remedied(err)
	} else {
		data.Data, _, err = workload.Load(ctx, *p.Settings, self)
	}
	if err == nil && p.node == nil {
		err = joinWith(ctx, p, data.Data)
	}
	return data, cli.Config(err)
}

// hold runs a peer that holds data for others and does not train, until the others have ended.
func hold(ctx context.Context, p *preparing, self ed25519.PublicKey) (share result.Share, err error) {
	data, err := held(ctx, p, self)
	if err != nil {
		return share, err
	}
	if p.Metrics != "" {
		counts, err := metrics.Listen(p.Metrics)
		if err != nil {
			return share, cli.Config(err)
		}
		defer func() { _ = counts.Close() }() // the holder's result does not depend on it
		counts.Serve(p.node, nil, p.Pprof)
	}
	p.Tell(watch.Report{Kind: watch.ReportReady, Said: fmt.Sprintf("holding %d examples of %s for members that train: those without data add --train-only to the command above", data.Len(), p.Dataset)})
	unknown := result.AccuracyOf(math.NaN())
	share.Result = result.Result{Name: p.PeerName(), Strategy: p.Strategy, Dataset: p.Dataset, Model: p.Model, TestAccuracy: unknown, Role: result.Holder, Peer: string(p.node.Self())}
	err = travel.Hold(ctx, p.node, *p.Settings, data, p.Log, p.duties.holds, func(c result.Travelled) {
		s := p.node.Stats()
		r := &share.Result
		r.Travelled, r.BytesSent, r.Peers, r.ConnectionsMax = &c, s.Exchanges.BytesSent, max(r.Peers, s.Members), s.ConnectionsMax
		r.Joined = r.Joined || s.Members > 1
		status := watch.StatusOf(s, 0)
		status.Role = result.Holder
		p.Tell(watch.Report{Kind: watch.ReportProgress, Status: &status})
	})
	share.Found = share.Result.Joined || p.AloneOK
	if ctx.Err() != nil {
		err = cli.ErrInterrupted
	}
	return share, errors.Join(err, p.node.Close())
}

// ofHolders makes the workload of a peer that trains on data of holders.
func ofHolders(ctx context.Context, p *preparing) (*workload.Workload, error) {
	var err error
	if p.IsTable() {
		if _, err = p.run(ctx); err == nil {
			err = p.describe(ctx, nil)
		}
	}
	if err == nil && p.node == nil {
		err = joinWith(ctx, p, nil)
	}
	if err != nil {
		return nil, err
	}
	p.Tell(watch.Report{Kind: watch.ReportNews, Said: "waiting for a member that holds " + p.Dataset})
	var data travel.Data
	if p.taker, data, err = travel.Take(ctx, p.node, *p.Settings, p.Log); err != nil {
		if ctx.Err() != nil {
			return nil, ErrNothingDone
		}
		return nil, cli.Config(err)
	}
	var work *workload.Workload
	if err = p.prepares(data.Prepared); err == nil {
		work, err = workload.Equip(*p.Settings, data.Data, p.Seed)
	}
	if err != nil {
		return nil, errors.Join(err, p.taker.Close())
	}
	work.Prepared = data.Prepared
	return work, nil
}

// prepares takes a holder's preparation of rows over, which must be that of the run.
func (p *preparing) prepares(held *prepare.Prepared) error {
	if held == nil {
		return nil
	}
	hash, err := rows.Hash(held)
	if err == nil && p.Preparation != "" && p.Preparation != hash {
		err = cli.Config(fmt.Errorf("a holder has prepared rows otherwise (%s) than the run (%s): start it again, with the file pipeline.json of a member", hash, p.Preparation))
	}
	p.prepared, p.Preparation = held, hash
	return err
}

// give lets a peer with --hold-and-train give the data on which it trains.
func give(ctx context.Context, t *training) (err error) {
	if t.HoldAndTrain {
		t.holder, err = travel.Give(ctx, t.peer.Node, t.Settings, travel.Data{Data: t.work.Data, Prepared: t.work.Prepared}, t.Log)
	}
	if err == nil && t.holder != nil {
		t.duties.holds(t.holder)
	}
	return err
}

// travelled tells what became of the rows that a peer took, by holder, or gave; nil if there are none.
func travelled(t *training) (*result.Travelled, map[string]result.Travelled) {
	switch {
	case t.taker != nil:
		all, by := t.taker.Counts()
		return &all, by
	case t.holder != nil:
		all := travel.Counts(t.holder.Counts())
		return &all, nil
	}
	return nil, nil
}

package train

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/describe"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// preparing is a peer before it trains, where its members agree on something by sums: how rows of
// tables are prepared, from which the layout of the model follows, or how pictures are normalized.
type preparing struct {
	*settings.Settings
	Observer
	key       ed25519.PrivateKey
	share     rows.Share
	prepared  *prepare.Prepared
	announced []string
}

// prepareWork makes the workload. Where that needs others, they are told where to join: at the
// addresses that are returned, which the settings are kept to.
func prepareWork(ctx context.Context, s *settings.Settings, key ed25519.PrivateKey, to Observer) (*workload.Workload, []string, error) {
	self := key.Public().(ed25519.PublicKey)
	p := &preparing{Settings: s, Observer: to, key: key}
	var data *dataset.Data
	var err error
	if s.IsTable() {
		data, err = p.run(ctx)
	} else {
		err = p.normalize(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, ErrNothingDone
	case err != nil:
		return nil, nil, rows.Remedied(err)
	}
	if !s.IsTable() {
		work, err := workload.Prepare(*s, self)
		return work, p.announced, cli.Config(err)
	}
	p.tell(data.Shape().Values())
	work, err := workload.OfTable(*s, p.share, p.prepared, data, self)
	return work, p.announced, cli.Config(err)
}

// run reads this peer's rows and prepares them.
func (p *preparing) run(ctx context.Context) (data *dataset.Data, err error) {
	source := p.Source
	if source == nil {
		if source, err = rows.Open(p.Rows(), true); err != nil {
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

// tell tells what has become of the rows.
func (p *preparing) tell(inputs int) {
	files := p.share.Files
	said := fmt.Sprintf("%d rows train as %d numbers each", p.prepared.Rows, inputs)
	if missing := p.prepared.Labels.Missing; missing > 0 {
		said += fmt.Sprintf("; %d are left out, of which %s is missing", missing, p.prepared.Labels.Target.Column)
	}
	if out := rows.LeftOut(p.prepared, files.Schema(), p.Table.Drop...); len(out) > 0 {
		said += "; " + rows.ToldLeftOut(out, p.Table.MaxValues)
	}
	for _, line := range append(p.share.Told(p.Table.Drop), said, strings.TrimSpace(files.Damaged().String())) {
		if line != "" {
			p.Tell(watch.Report{Kind: watch.ReportNews, Said: line})
		}
	}
}

// known is what rows are prepared by, if that has been found before; nil if not.
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

// check sees to it that a file is that of this run and this target.
func (p *preparing) check(path string, known *prepare.Prepared) error {
	hash, err := rows.Hash(known)
	if err != nil {
		return err
	}
	target, _ := table.ParseTarget(p.Table.Target) // faults has seen to it
	switch {
	case p.Preparation != "" && p.Preparation != hash:
		return cli.Usage(cli.Faultf("pipeline", "%s is of rows that were prepared otherwise (%s) than those of the run that is joined (%s): copy the file that its members have", path, hash, p.Preparation))
	case known.Labels.Target != target:
		return cli.Usage(cli.Faultf("pipeline", "%s is of the target %s, not of %s: give another file, or none", path, known.Labels.Target, target))
	}
	p.Preparation = hash
	return nil
}

// together agrees with the other members, by a peer that only sums.
func (p *preparing) together(ctx context.Context, agree func(table.Flock) error) error {
	s := *p.Settings
	s.Run = s.PreparingRun()
	switch _, parts, _ := s.PartOf(); {
	case p.Begin != nil: // local begins all
		s.MinPeers = max(parts, 1)
	case len(s.Join) > 0:
		s.MinPeers = max(s.MinPeers, 2)
	}
	quiet := zap.NewAtomicLevelAt(p.Log.Level())
	log := p.Log.WithOptions(zap.IncreaseLevel(quiet), without(""))
	joining := rows.Joining{Settings: s, Description: describe.Of(s, nil), Key: p.key, Together: p.Begin != nil, Log: log, Started: p.started}
	flock, err := joining.Join(ctx)
	if err != nil {
		return tooLate(err)
	}
	err = tooLate(agree(flock))
	if err == nil {
		err = p.spare(ctx, flock)
	}
	quiet.SetLevel(zap.ErrorLevel) // who trains already may ask for a peer that is yet to train
	if err := errors.Join(err, flock.Close()); err != nil {
		return err
	}
	return p.awaitTraining(ctx)
}

// expected is a log without those that ask for what this process does not take part in yet, or
// no more: for the run before it trains, as all do that join it; for the sums by which the data
// were prepared, once it trains, as does who has not heard yet that it has left those.
type expected struct {
	zapcore.Core
	run string // that is asked for; empty: any
}

// With implements zapcore.Core.
func (c expected) With(fields []zapcore.Field) zapcore.Core {
	return expected{c.Core.With(fields), c.run}
}

// Check implements zapcore.Core.
func (c expected) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if strings.HasPrefix(e.Message, "refused a stream") && c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return c.Core.Check(e, to)
}

// Write implements zapcore.Core.
func (c expected) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if c.run == "" || slices.ContainsFunc(fields, func(f zapcore.Field) bool { return f.Key == "run" && f.String == c.run }) {
		return nil
	}
	return c.Core.Write(e, fields)
}

// without leaves out of a log what is expected.
func without(run string) zap.Option {
	return zap.WrapCore(func(c zapcore.Core) zapcore.Core { return expected{c, run} })
}

// whileTraining is the log of a peer that trains, of which others know from the preparing if it
// has announced addresses then.
func whileTraining(log *zap.Logger, s *settings.Settings, announced []string) *zap.Logger {
	if len(announced) == 0 {
		return log
	}
	return log.WithOptions(without(s.PreparingRun()))
}

// tooLate adds a remedy to the error of a peer that has come while the others prepare.
func tooLate(err error) error {
	if errors.Is(err, peer.ErrSumOver) || errors.Is(err, seam.ErrUnknownRun) {
		return fmt.Errorf("preparing the data with the others: %w: they may have done so by now: start this peer again", err)
	}
	return err
}

// maxSpare is how many members a peer knows to join beside those that it was given.
const maxSpare = 4

// spare lets a peer that joins others know further addresses: who it was to join may be gone by
// the time that it trains.
func (p *preparing) spare(ctx context.Context, flock table.Flock) error {
	mine, err := json.Marshal(p.announced)
	if err != nil {
		return err
	}
	all, err := flock.Gather(ctx, "fit/addresses", mine)
	if err != nil || len(p.Join) == 0 { // who begins the run joins nobody
		return err
	}
	join := slices.Clone(p.Join)
	for _, data := range all {
		var theirs []string
		if json.Unmarshal(data, &theirs) == nil && len(theirs) > 0 && !slices.Contains(p.announced, theirs[0]) && !slices.Contains(join, theirs[0]) && len(join) < len(p.Join)+maxSpare {
			join = append(join, theirs[0])
		}
	}
	p.Join = join
	return nil
}

// Bounds of awaitTraining.
const (
	awaitBound = 15 * time.Second // to leave may take five
	awaitEvery = 100 * time.Millisecond
)

// awaitTraining waits until a peer to join trains, which has to leave the sums first: one that
// is known to take no part in a run is not asked for long.
func (p *preparing) awaitTraining(ctx context.Context) (err error) {
	if len(p.Join) == 0 {
		return nil
	}
	admission, err := p.Admission(p.Log)
	if err != nil {
		return cli.Config(err)
	}
	transport, err := p2pnet.New(p2pnet.Config{Key: p.key, Listen: []string{}, Known: p.KnownPeers(), Log: p.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, transport.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, awaitBound)
	defer cancel()
	for ctx.Err() == nil {
		for _, address := range p.Join {
			_, err := admission.Inquire(ctx, transport, address, p.Run, [32]byte{})
			refused, answered := errors.AsType[*seam.RefusedError](err)
			if err == nil || answered && refused.Why != seam.ErrUnknownRun {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(awaitEvery):
		}
	}
	return nil // to train alone, or to be refused, is told by the training
}

// started tells where others join, and keeps to the port for the training.
func (p *preparing) started(summing *peer.Node) {
	p.announced = summing.JoinAddresses()
	r := watch.Report{Kind: watch.ReportStarted, Peer: string(summing.Self()), Addresses: p.announced, Token: tokenOf(*p.Settings, summing), Keyed: p.Keyed()}
	if p.MinPeers > 1 {
		r.Said = fmt.Sprintf("waiting until %d peers are here, to prepare the data together", p.MinPeers)
	}
	p.Listen = pinned(p.Listen, p.announced)
	p.Tell(r)
}

// fit finds out how rows are prepared, and prepares them.
func (p *preparing) fit(ctx context.Context, flock table.Flock) (*dataset.Data, error) {
	prepared, own, err := p.share.ForModel(ctx, flock, p.share.Table.Shared())
	if err != nil {
		return nil, err
	}
	data, err := p.share.Data(ctx, prepared, own)
	if err := table.Ready(ctx, flock, "fit/prepared", err); err != nil { // all begin to train together
		return nil, err
	}
	if data.Train, err = p.share.Spread(ctx, flock, data.Train); err != nil {
		return nil, err
	}
	p.prepared, p.MinPeers = prepared, min(p.MinPeers, prepared.Peers) // nobody waits for one that died meanwhile
	p.Preparation, err = rows.Hash(prepared)
	return data, err
}

// pinned is an address to listen on with the port that the system has chosen for it, where there
// is one address only.
func pinned(listen, got []string) []string {
	if len(listen) != 1 || len(got) == 0 {
		return listen
	}
	_, after, _ := strings.Cut(got[0], "/tcp/")
	port, _, _ := strings.Cut(after, "/")
	if host, chosen, err := net.SplitHostPort(listen[0]); err == nil && chosen == "0" && port != "" {
		return []string{net.JoinHostPort(host, port)}
	}
	return listen
}

// accuracyOf is the figure of one peer, unknown if it could not be had.
func accuracyOf(figure float64, err error) result.Accuracy {
	if err != nil {
		figure = math.NaN()
	}
	return result.AccuracyOf(figure)
}

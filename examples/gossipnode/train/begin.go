package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// started reports that a peer listens, how others can join it, and for how many members it waits.
func started(t *training) {
	r := watch.Report{Kind: watch.ReportStarted, Peer: string(t.peer.Self()), Dashboard: t.panel.url}
	if t.Strategy != settings.StrategyAlone {
		addresses := t.peer.JoinAddresses()
		t.Log.Info("listening", zap.Strings("addresses", addresses))
		if !slices.Equal(addresses, t.announced) {
			s := t.Settings
			s.Founder = cmp.Or(s.Founder, string(describedBy(t)))
			r.Addresses, r.Token, r.Keyed = addresses, tokenOf(s, t.peer.Node), s.Keyed()
		}
	}
	if gathers(t) {
		r.Said = fmt.Sprintf("waiting until %d peers are here, for %s at most", t.MinPeers, t.MinPeersWait)
	}
	t.Tell(r)
}

// seenWithin bounds how long a peer that has joined waits until it sees another member.
const seenWithin = time.Second

// arrived describes, when this peer can train, how many peers it has joined and where its model comes from.
func arrived(ctx context.Context, t *training) string {
	s := t.peer.Stats()
	if s.Joined && s.Members < 2 && len(t.Join) > 0 && t.Strategy != settings.StrategyAlone {
		bounded, cancel := context.WithTimeout(ctx, seenWithin)
		defer cancel()
		_ = t.peer.WaitMembers(bounded, 2) // none comes if all addresses are this peer's own
		s = t.peer.Stats()
	}
	return beginning(s, t.Strategy == settings.StrategyAlone, t.work.Resumed != nil)
}

// beginning is the line that arrived returns.
func beginning(s stats.Peer, alone, resumed bool) string {
	others := max(s.Members-1, s.State.Servers)
	joined := "joined " + cli.Plural(uint64(others), "peer")
	own := "there is no model to copy yet"
	if resumed {
		own = "the model is that of the checkpoint"
	}
	switch {
	case alone:
		return "alone, as --strategy says"
	case s.State.Servers > 0 && others > 1:
		return fmt.Sprintf("%s; model copied from %d of them", joined, s.State.Servers)
	case s.State.Servers > 0:
		return joined + "; model copied"
	case s.State.Alone:
		return joined + "; its model could not be copied"
	case s.Members > 1:
		return joined + "; " + own
	case s.Joined:
		return "no other peer is here yet; " + own
	}
	return "no peer answers; alone until one does"
}

// gathers tells whether there are members to wait for.
func gathers(t *training) bool { return t.MinPeers > 1 && t.Strategy != settings.StrategyAlone }

// gather waits for the members that --min-peers asks for.
func gather(ctx context.Context, t *training) error {
	if !gathers(t) {
		return nil
	}
	t.waiting.Store(true)
	defer t.waiting.Store(false)
	bounded, cancel := context.WithTimeout(ctx, t.MinPeersWait)
	defer cancel()
	err := awaitMembers(bounded, t)
	switch {
	case err == nil:
		t.joined = time.Since(t.started)
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		t.Log.Warn("not all peers have come: training with those that have", zap.Error(err))
	default:
		return err
	}
	return nil
}

// Others train already if the steps of one have grown at so many looks: one that comes back may add those of before, and news of one that
// has gone may come late. Not at one look after the other: members say their steps seldom, and perhaps all at the same time (design 003).
const (
	lookEvery = time.Second
	growing   = 3
)

// growth is what each member's steps were at the last look, and how often they had grown.
type growth map[transport.PeerID]struct{ steps, grown uint64 }

// look tells whether a member trains.
func (g growth) look(members []control.Member) (trains bool) {
	for _, m := range members {
		seen := g[m.ID]
		if seen.steps > 0 && m.Steps > seen.steps {
			seen.grown++
		}
		seen.steps, trains = m.Steps, trains || seen.grown >= growing
		g[m.ID] = seen
	}
	return trains
}

// awaitMembers waits for the members that --min-peers asks for, or until others train.
func awaitMembers(ctx context.Context, t *training) error {
	for others := (growth{}); !others.look(t.peer.Members()); {
		within, cancel := context.WithTimeout(ctx, lookEvery)
		err := awaitTraining(within, t.peer, t.MinPeers)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// awaitTraining waits until so many members can train or hold data, this one included. Members that still prepare data do not
// count.
func awaitTraining(ctx context.Context, p *member, least int) error {
	const look = 10 * time.Millisecond
	for {
		if err := p.WaitMembers(ctx, least); err != nil {
			return err
		}
		idle := slices.DeleteFunc(p.Members(), func(m control.Member) bool { return m.State != control.Idle || m.Rows > 0 })
		if present := p.Stats().Members - len(idle); present >= least {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d members to train: %w", least, ctx.Err())
		case <-time.After(look):
		}
	}
}

// ready reports that this peer is ready, and waits for Begin. Then it reports what it does.
func ready(ctx context.Context, t *training, does string) error {
	t.Tell(watch.Report{Kind: watch.ReportReady, Said: arrived(ctx, t)})
	if t.Begin != nil {
		select {
		case <-t.Begin:
		case <-ctx.Done():
			return cli.ErrInterrupted
		}
	}
	t.first, t.begun = time.Now(), t.peer.Stats().Progress
	t.Tell(watch.Report{Kind: watch.ReportTraining, Said: does})
	return nil
}

// turn makes a step, or serves parameters until the run is over.
func turn(ctx context.Context, t *training, step func(x, grad tensor.Vector) (peer.Result, error)) error {
	if t.ServeOnly {
		return t.peer.Serve(ctx)
	}
	if t.staged.Pipeline != nil {
		return stepOfStage(ctx, t)
	}
	return t.peer.Step(ctx, step)
}

// firstGradient is then for the first step, which waits for Begin. Step calls it when the peer has joined, or has
// stopped waiting for that. So when all peers have reported that they are ready, none has to wait for members any more.
func firstGradient(ctx context.Context, t *training, then func(x, grad tensor.Vector) (peer.Result, error)) func(x, grad tensor.Vector) (peer.Result, error) {
	return func(x, grad tensor.Vector) (peer.Result, error) {
		if err := ready(ctx, t, does(t)); err != nil {
			return peer.Result{}, err
		}
		return then(x, grad)
	}
}

// overlap has the model tell the peer which values of a gradient are ready while it computes the others, and by what they can be
// sent in fewer bytes.
func overlap(t *training) {
	if t.Overlaps() {
		t.work.Model.OnReady(func(from int) { t.peer.Ready(from, t.batch.Len()) })
	}
	if t.Factors {
		t.work.Model.OnFactors(t.peer.Factors)
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// CopyEvery is how many steps a member that has a stage alone makes until it gives a copy of its parameters to a member of
// another stage. So many are lost at most if it dies.
const CopyEvery = 50

const (
	// maxCopying bounds the copies that a member gives or takes at once, one of another member: each is in memory meanwhile.
	maxCopying = 4
	// leastRate is the fewest bytes a second at which a copy has to come, or be taken.
	leastRate = 64 << 10
)

// errSlow: who holds up a copy, keeps others from theirs.
var errSlow = errors.New("a copy of a stage takes longer than at 64 KiB/s")

// copies are the parameters of other stages that this member keeps, one of each stage.
type copies struct {
	*run
	steps uint64      // that the trainer's goroutine has made
	busy  *places     // for copies that are asked for, or taken
	gives atomic.Bool // a copy of this member's is on its way
	mu    sync.Mutex
	kept  []kept
}

// kept is a copy of a stage's parameters, and the flock's steps when it was made.
type kept struct {
	at     uint64
	values coded
}

func newCopies(r *run) *copies {
	return &copies{run: r, busy: newPlaces(maxCopying, 1), kept: make([]kept, r.with.Plan.Parts())}
}

// serve takes a copy of a member that has the stage, or gives one. It does so only for members.
func (c *copies) serve(s *framed.Stream, m wire.Batch, records []transport.Record) error {
	stage := int(m.Stage) - 1
	if stage < 0 || stage >= len(c.kept) {
		return fmt.Errorf("a copy of stage %d of %d: %w", m.Stage, len(c.kept), wire.ErrMessage)
	}
	has := func(r transport.Record) bool { return r.Peer == s.Remote() && flock.Trains(r) && r.Stage == m.Stage }
	if c.with.Plan.ends && stage == 0 && !slices.ContainsFunc(records, func(r transport.Record) bool { return r.Peer == s.Remote() && r.Stage == m.Stage }) {
		s.Refuse(0, wire.ReasonProtocol, "the ends of the model stay with the members that have data")
		return nil
	}
	if !c.busy.take(s.Remote()) {
		s.Refuse(0, wire.ReasonBusy, "")
		return nil
	}
	defer c.busy.free(s.Remote())
	if m.Kind == wire.BatchFetch {
		return c.of(stage).give(s, m.Stage)
	}
	if !slices.ContainsFunc(records, has) || stage == c.with.Stage {
		s.Refuse(0, wire.ReasonProtocol, "a member gives copies of its own stage, to members of others")
		return nil
	}
	if m.Number > newest(c.node) {
		return fmt.Errorf("a copy of step %d, in a run of fewer: %w", m.Number, wire.ErrMessage)
	}
	got, err := fetched(s, c.with.Plan, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if got.at >= c.kept[stage].at {
		c.kept[stage] = got
	}
	c.mu.Unlock()
	s.Finish()
	return nil
}

// newest is the step of the latest copy that is believed: one beyond it would stand in the way of all later ones. Members hear of
// the others' steps at different times, which matters most when there are few.
func newest(n *peer.Node) uint64 { return 2*n.Stats().FlockSteps + maxAsked*CopyEvery }

// give sends a copy of a stage.
func (k kept) give(s *framed.Stream, stage uint8) error {
	within(s, k.values.n)
	err := framed.Say(s, 0, wire.Batch{Kind: wire.BatchKeep, Stage: stage, Codec: raw().ID(), Number: k.at, Values: uint32(k.values.n)})
	if err == nil {
		err = k.values.send(s)
	}
	if err == nil {
		s.Finish()
	}
	return err
}

// within bounds the time for a copy of so many values.
func within(s *framed.Stream, values int) {
	bytes := values * tensor.ValueSize
	s.Until, s.Late = time.Now().Add(s.Stall+time.Duration(bytes/leastRate+1)*time.Second), errSlow
}

// of is what this member has of a stage: its own parameters as they are now, or the copy that it keeps.
func (c *copies) of(stage int) kept {
	if stage == c.with.Stage {
		return c.own()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[stage]
}

// fetched reads the parameters of a stage, as a BATCH says them to be.
func fetched(s *framed.Stream, plan Plan, m wire.Batch) (got kept, err error) {
	if want := plan.length(int(m.Stage) - 1); int(m.Values) != want || m.Codec != raw().ID() {
		return got, fmt.Errorf("%d parameters of stage %d, which has %d: %w", m.Values, m.Stage, want, wire.ErrMessage)
	}
	got.at = m.Number
	within(s, int(m.Values))
	if got.values, err = receive(s, raw(), int(m.Values)); err == nil {
		if _, err = got.values.decode(); err != nil {
			err = fmt.Errorf("%w: %w", wire.ErrMessage, err)
		}
	}
	return got, err
}

// keeper is the member of another stage that keeps the copy of a stage: the same as long as it is there.
func keeper(records []transport.Record, stage, stages int) (id transport.PeerID) {
	least := uint64(0)
	for _, r := range records {
		place := r.Peer.Fingerprint() ^ uint64(stage+1)*0x9e3779b97f4a7c15
		if flock.Trains(r) && r.Stage > 0 && int(r.Stage) <= stages && int(r.Stage) != stage+1 && (id == "" || place < least) {
			id, least = r.Peer, place
		}
	}
	return id
}

// give gives a copy of this member's parameters to another, every CopyEvery steps while it has its stage alone.
func (c *copies) give(m *members) {
	if c.steps++; c.steps%CopyEvery != 0 || c.with.Plan.ends && c.with.Stage == 0 {
		return
	}
	records := c.service.Records()
	to := keeper(records, c.with.Stage, len(c.kept))
	if to == "" || len(m.of(records, c.with.Stage)) > 1 {
		return
	}
	if !c.gives.CompareAndSwap(false, true) {
		return // the link takes longer than so many steps
	}
	own := c.own()
	c.tasks.Spawn(func() {
		defer c.gives.Store(false)
		err := c.service.Ask(c.life, to, func(s *framed.Stream) error { return own.give(s, uint8(c.with.Stage+1)) })
		if err != nil && c.life.Err() == nil {
			c.with.Log.Warn("this member has its stage alone, and cannot give a copy of it to another", zap.String("peer", string(to)), zap.Error(err))
		}
	})
}

// own is a copy of this member's parameters.
func (c *copies) own() kept {
	at, values := c.node.Stats().FlockSteps, make(tensor.Vector, c.with.Plan.length(c.with.Stage))
	if _, err := c.trainer.Snapshot(values, 0); err != nil {
		return kept{} // it has another length: the trainer is of another plan
	}
	return kept{at, encode(raw(), values)}
}

// part copies the parameters of a stage, or of the ends, as a member has them that trains it.
func (c *copies) part(ctx context.Context, m *members, stage int) (tensor.Vector, error) {
	if stage == c.with.Stage {
		return c.own().values.decode()
	}
	for try := 0; c.node.State() != control.Closed; try++ {
		var fault error
		if ids := m.having(c.service.Records(), stage); len(ids) > 0 {
			got, err := fetch(ctx, c.service, ids[try%len(ids)], c.with.Plan, stage)
			if err == nil && got.values.n > 0 {
				return got.values.decode()
			}
			fault = err
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), fault)
		}
	}
	return nil, peer.ErrClosed
}

// fetch asks a member for what it has of a stage; without values if that is nothing.
func fetch(ctx context.Context, service *peer.Service, from transport.PeerID, plan Plan, stage int) (got kept, err error) {
	err = offered(ctx, service, from, stage, func(s *framed.Stream, m wire.Batch) (err error) {
		if m.Values > 0 {
			got, err = fetched(s, plan, m)
		}
		return err
	})
	return got, err
}

// offered asks a member for what it has of a stage. It takes, or leaves, what the member says to have.
func offered(ctx context.Context, service *peer.Service, from transport.PeerID, stage int, take func(*framed.Stream, wire.Batch) error) error {
	return service.Ask(ctx, from, func(s *framed.Stream) error {
		var m wire.Batch
		err := framed.Say(s, 0, wire.Batch{Kind: wire.BatchFetch, Stage: uint8(stage + 1)})
		if err == nil {
			_, err = s.Receive(&m)
		}
		if err == nil && (m.Kind != wire.BatchKeep || int(m.Stage) != stage+1) {
			err = fmt.Errorf("a copy of another stage: %w", wire.ErrMessage)
		}
		if err != nil {
			return err
		}
		return take(s, m)
	})
}

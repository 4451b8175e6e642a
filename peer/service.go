package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/pushpull"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Service is a protocol that members speak in addition to those of their nodes. Packages rows, paramclient and pipeline use it. The bytes on its
// streams count as bytes of the node. Its functions are safe for concurrent use.
type Service struct {
	// Ask opens a stream to another member and speaks on it.
	Ask func(ctx context.Context, to transport.PeerID, talk func(*framed.Stream) error) error
	// Over is closed when the run is over for the node, and Flown when it is over for all members.
	Over, Flown <-chan struct{}
	// Records gives the records of the other members, in the order of their ids.
	Records func() []transport.Record
	// Hold sets the number of rows that the node's own record says it gives.
	Hold func(rows uint64)
	// Choose says in the node's own record which stage it is going to train, from 1; 0 if none. A trainer's own stage replaces it.
	Choose func(stage uint8)
	// Together says that members of all stages make their steps at one time: near the end of the run each waits for news of the others.
	Together func()
	// Count lets a function change the node's counts of rows: of those that it holds, and of those that it takes.
	Count func(change func(held, taken *stats.Rows))
	// Close ends the service and waits for its streams. It may be called again.
	Close func()
}

// Serve lets a node serve a protocol until Close, or until the node closes. Answer gets each stream that another member opens, on
// a goroutine of its own. When the service ends, its context ends and the streams are reset. If answer returns an error, the
// request is refused. Peers that are no members are refused. If answer is nil, the node only asks.
func Serve(n *Node, protocol transport.Protocol, answer func(context.Context, *framed.Stream) error) (*Service, error) {
	ctx, end := context.WithCancel(n.life.Working)
	handler := n.requests.Answering(func(s *framed.Stream) error {
		defer context.AfterFunc(ctx, s.Stream.Reset)()
		if !n.flock.Here(s.Remote()) {
			s.Refuse(0, wire.ReasonNotMember, "")
			return nil
		}
		return answer(ctx, s)
	})
	stop, err := func() {}, error(nil)
	if answer != nil {
		stop, err = n.net.transport.Handle(protocol, n.network.Run, handler)
	}
	ended := make(chan struct{})
	if err == nil && !n.life.Tasks.Spawn(func() {
		defer close(ended)
		select {
		case <-n.life.Closing:
		case <-ctx.Done():
		}
		end()
		stop()
	}) {
		end() // so that no answer waits
		stop()
		err = ErrClosed
	}
	if err != nil {
		end()
		if errors.Is(err, transport.ErrClosed) {
			err = ErrClosed
		}
		return nil, fmt.Errorf("serving %s: %w", protocol, err)
	}
	return &Service{
		Ask: func(ctx context.Context, to transport.PeerID, talk func(*framed.Stream) error) error {
			return n.requests.Converse(ctx, to, protocol, talk)
		},
		Over:     n.flock.Over(),
		Flown:    n.flock.Flown(),
		Records:  n.flock.Records,
		Hold:     func(rows uint64) { n.flock.SetRows(rows); n.inbox.Corrected() },
		Choose:   func(stage uint8) { n.flock.SetStage(stage); n.inbox.Corrected() },
		Together: n.flock.Together,
		Count:    n.counters.Rows,
		Close:    func() { end(); <-ended },
	}, nil
}

// valuesOf is the protocol by which others pull and push values of served parameters, where a trainer's machine knows of such.
func valuesOf(t *Trainer) []service {
	machine := t.steps.traits.Server
	if machine == nil {
		return nil
	}
	values := pushpull.New(pushpull.Config{
		Requests: t.node.requests, Layout: t.with.Params.Layout().Hash(), Replica: t.replica, Loop: t.node.inbox,
		Member: t.node.flock.Here, Quarantine: t.conversations.Quarantine,
	}, machine)
	answer := func(s *framed.Stream) error { return values.Serve(t.life.Working, s) }
	return []service{{transport.ProtocolValues, t.node.requests.Answering(answer)}}
}

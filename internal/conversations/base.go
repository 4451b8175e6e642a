package conversations

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// base is what all conversations of a peer share.
type base struct {
	Config
	conversations idle.Pool[*conversation]
	underway
}

func newBase(c Config) *base {
	b := &base{Config: c, conversations: idle.NewPool(maxIdleConversations, newConversation)}
	b.Host.Peer = asked{b}
	return b
}

// now is the time since the peer was started.
func (b *base) now() time.Duration { return b.Life.Now() }

// conversation starts a conversation on a stream.
func (b *base) conversation(stream transport.Stream) *conversation {
	t := b.conversations.Take()
	t.codec, t.started, t.Sealed = 0, b.Life.Started, b.Host.Sealed
	t.Begin(stream, b.Stall)
	return t
}

// done counts the bytes of a conversation and returns it for reuse; its stream is already
// closed or reset.
func (b *base) done(t *conversation) {
	b.Counters.Moved(t.codec, t.Sent, t.Received)
	t.Stream.Stream = nil
	b.conversations.Put(t)
}

// Abort breaks an exchange off without waiting for it: resetting a stream can take as long
// as its connection hangs. From now on the exchange changes no buffer, since the machine's
// next action may fill them.
func (b *base) Abort(x *Ongoing) {
	x.stopped.Store(true)
	if !b.Life.Tasks.Spawn(x.Abandon) {
		x.Abandon() // the peer is closing, and waits for this exchange
	}
}

// asked implements session.Peer: what conversations ask of their peer.
type asked struct{ *base }

// Now implements session.Peer.
func (a asked) Now() session.State {
	return session.State{
		Incarnation: a.Flock.Incarnation(), Steps: a.Flock.Steps(), View: a.Presence.View(), Progress: a.Trainer.Progress(), Ready: a.Model.Open(),
	}
}

// Member implements session.Peer.
func (a asked) Member(id transport.PeerID) bool { return a.Flock.Here(id) }

// Settle implements session.Peer.
func (a asked) Settle(partner transport.PeerID, exchange uint64, question wire.Status, answer wire.Settled) {
	applied, dropped, lost := a.Host.Ledger.Settle(string(partner), exchange, question, answer)
	a.Counters.Resolved(applied + dropped)
	a.Loop.Doubts()
	a.Log.Info("settled slices that were in doubt", zap.String("peer", string(partner)), zap.Uint64("exchange", exchange),
		zap.Int("applied", applied), zap.Int("dropped", dropped), zap.Int("lost", lost))
}

// Record implements session.Peer.
func (a asked) Record() []byte { return a.Membership.Signed() }

// Received implements session.Peer: the view is corrected before the refusal is reported to
// the machine.
func (a asked) Received(partner transport.PeerID, record wire.Record) error {
	news, err := a.Presence.Received(partner, record.View, record.Signed)
	if err != nil {
		return fmt.Errorf("%w: %w", err, wire.ErrMessage)
	}
	if news {
		a.Loop.Corrected()
	}
	return nil
}

package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// leaveInDoubt has a rogue take the difference of the host's only slice and go
// without a word.
func (r *rogue) leaveInDoubt() {
	r.t.Helper()
	stream, frames := r.open()
	stream.Write(r.propose(nil))
	frames.Next()
	stream.Write(r.code(1))
	if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeDiff {
		r.t.Fatalf("the host answers %v, %v", header.Type, err)
	}
	stream.Reset()
	synctest.Wait()
	if s := r.host.Stats().Exchanges; s.InDoubt != 1 || s.Failed != 1 || s.Lost != 0 {
		r.t.Fatalf("%d slices in doubt, %d lost, %d failed; want 1, 0 and 1", s.InDoubt, s.Lost, s.Failed)
	}
}

// hearQuestion reads the host's question about exchange 1.
func (r *rogue) hearQuestion(frames *wire.Reader) {
	r.t.Helper()
	header, payload, err := frames.Next()
	var question wire.Status
	if err != nil || header.Type != wire.TypeStatus || header.Exchange != 1 || question.Decode(payload) != nil {
		r.t.Fatalf("the host says %v about exchange %d, %v; want %v", header.Type, header.Exchange, err, wire.TypeStatus)
	}
	if question.Incarnation != 1 || len(question.Slices) != 1 || question.Slices[0] != 0 {
		r.t.Fatalf("the host asks %+v", question)
	}
}

func (r *rogue) answer(stream transport.Stream, answer wire.Settled) {
	r.t.Helper()
	frame, err := wire.Pack(nil, 1, answer)
	if err != nil {
		r.t.Fatal(err)
	}
	stream.Write(frame)
}

// TestTheHostAsksOfItsOwnAccord: it need not wait for a proposal, and goes on
// asking a partner that cannot be reached.
func TestTheHostAsksOfItsOwnAccord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		r.leaveInDoubt()
		time.Sleep(20 * time.Second) // nobody listens there
		asked := make(chan struct{})
		stop, err := r.transport.Handle(transport.ProtocolExchange, "digits", func(stream transport.Stream) {
			defer stream.Close()
			r.hearQuestion(wire.NewReader(stream, 0))
			r.answer(stream, wire.Settled{Known: true, Applied: 1})
			close(asked)
			stream.Read(make([]byte, 1)) // the host closes
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("the host has not asked within a minute")
		}
		time.Sleep(time.Second)
		if s := r.host.Stats().Exchanges; s.InDoubt != 0 || s.Settled != 1 {
			t.Errorf("%d in doubt, %d settled", s.InDoubt, s.Settled)
		}
	})
}

// TestDoubtsExpire: a partner that never comes back is given up, and what that can
// have cost is told.
func TestDoubtsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		r.leaveInDoubt()
		time.Sleep(11 * time.Minute)
		if s := r.host.Stats().Exchanges; s.InDoubt != 0 || s.Lost != 1 || !(s.LostBound > 0) {
			t.Errorf("%d in doubt, %d lost with bound %g", s.InDoubt, s.Lost, s.LostBound)
		}
	})
}

// TestTheHostWaitsForNobody: once the only stream of an exchange has ended, nothing of
// it can follow, and the next proposal finds the host free.
func TestTheHostWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		stream, frames := r.open()
		stream.Write(r.propose(nil))
		frames.Next()
		stream.Close()
		time.Sleep(time.Second)
		again, frames := r.open()
		again.Write(r.propose(nil))
		if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeAccept {
			t.Errorf("a second after the stream has ended the host answers %v, %v", header.Type, err)
		}
		again.Reset()
	})
}

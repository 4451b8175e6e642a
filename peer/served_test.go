package peer_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// lossy is a transport that loses each ACCEPT, and takes a second until it knows.
type lossy struct{ transport.Transport }

func (l lossy) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	return l.Transport.Handle(protocol, run, func(stream transport.Stream) { handler(lossyStream{stream}) })
}

type lossyStream struct{ transport.Stream }

func (s lossyStream) Write(b []byte) (int, error) {
	header, _, err := wire.NewReader(bytes.NewReader(b), 0).Next()
	if err != nil || header.Type != wire.TypeAccept {
		return s.Stream.Write(b)
	}
	time.Sleep(time.Second)
	return 0, errors.New("the connection is gone")
}

// TestALaneOfAnExchangeWhoseAnswerIsLost: a lane that has come before the answer to its
// proposal was lost ends with the exchange, which waits for that.
func TestALaneOfAnExchangeWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		place := inMemory(t, network, "host", "digits")
		place.Transport = lossy{place.Transport}
		r := newRogueAt(t, network, place, peer.Exchange{Lanes: 2, SliceLen: 64})
		proposal := r.propose(func(p *wire.Propose) { p.SliceLen, p.Lanes = 64, 2 })
		first, _ := r.open()
		if _, err := first.Write(proposal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		lane, err := wire.Pack(nil, r.exchange, wire.Lane{Lane: 1})
		if err != nil {
			t.Fatal(err)
		}
		second, frames := r.open()
		if _, err := second.Write(lane); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if header, _, err := frames.Next(); err == nil {
			t.Errorf("the lane is answered %v", header.Type)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the lane ended after %s", took)
		}
		synctest.Wait()
		if failed := r.host.Stats().Exchanges.Failed; failed != 1 {
			t.Errorf("%d exchanges failed, want 1", failed)
		}
		if kept := r.host.Kept(); kept["sessions"] != 0 || kept["exchanges under way"] != 0 {
			t.Errorf("the host keeps %v", kept)
		}
	})
}

package peer_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// listener counts the words that it is told. Nobody knows what it does with them.
type listener struct {
	collective.Machine
	told *atomic.Int64
}

func (m listener) Traits() collective.Traits { return collective.Traits{Messages: true} }

func (m listener) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	if e.Kind == collective.Received {
		m.told.Add(1)
	}
	return m.Machine.Decide(now, e, actions)
}

// babble has a rogue tell a host words for a time, as fast as it takes them.
func (r *rogue) babble(d time.Duration) (said int, answer wire.Type) {
	r.t.Helper()
	frame, err := wire.Pack(nil, 0, wire.Tell{Kind: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	stream, frames := r.open()
	defer stream.Reset()
	stream.SetWriteDeadline(time.Now().Add(d))
	for began := time.Now(); time.Since(began) < d && said < 100_000; said++ {
		if _, err := stream.Write(frame); err != nil {
			break
		}
	}
	synctest.Wait()
	stream.SetReadDeadline(time.Now().Add(time.Second))
	header, _, _ := frames.Next()
	return said, header.Type
}

// TestWordsAreHeardAtARate: whoever tells more than a machine in lock-step would is heard
// more slowly, and the trainer's steps and the others' words are not behind all of it.
func TestWordsAreHeardAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		r := newRogueWith(t, peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
			m, err := averaging.NewADPSGD(c)
			return listener{collective.Of(m), &told}, err
		}})
		began := time.Now()
		said, _ := r.babble(3 * time.Second)
		most := 3000 * time.Since(began).Seconds()
		if n := told.Load(); n < 1000 || float64(n) > most {
			t.Errorf("of %d words %d came before the machine within %s, want at most %g", said, n, time.Since(began), most)
		}
		if s := r.host.Stats(); s.Quarantined != 0 {
			t.Error("who says much is taken for a liar")
		}
	})
}

// TestWordsAreRefusedWhereNobodyHeedsThem: AD-PSGD has no use for words, and says so once.
func TestWordsAreRefusedWhereNobodyHeedsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		if _, answer := r.babble(time.Second); answer != wire.TypeRefuse {
			t.Errorf("the host answers words with %v", answer)
		}
		if s := r.host.Stats(); s.Exchanges.Declined != 1 || s.Quarantined != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAStreamOfWordsThatIsSilentEnds: nobody keeps a stream open for words that do not come.
func TestAStreamOfWordsThatIsSilentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		r := newRogueWith(t, peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
			m, err := averaging.NewADPSGD(c)
			return listener{collective.Of(m), &told}, err
		}})
		frame, _ := wire.Pack(nil, 0, wire.Tell{Kind: 1})
		stream, frames := r.open()
		defer stream.Reset()
		if _, err := stream.Write(frame); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		stream.SetReadDeadline(time.Now().Add(time.Hour))
		frames.Next()
		if took := time.Since(began); took < 30*time.Second || took > time.Minute || told.Load() != 1 {
			t.Errorf("the stream ended after %s, with %d words told", took, told.Load())
		}
	})
}

// TestAStreamOfWordsThatBreaksTheRulesEnds: who tells something else is refused, and waited
// for no longer than after any other refusal.
func TestAStreamOfWordsThatBreaksTheRulesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		r := newRogueWith(t, peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
			m, err := averaging.NewADPSGD(c)
			return listener{collective.Of(m), &told}, err
		}})
		frame, _ := wire.Pack(nil, 0, wire.Tell{Kind: 1})
		stream, frames := r.open()
		defer stream.Reset()
		if _, err := stream.Write(append(frame, r.code(1)...)); err != nil {
			t.Fatal(err)
		}
		if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeRefuse {
			t.Fatalf("the host answers %v, %v", header.Type, err)
		}
		time.Sleep(peer.Stall + time.Second)
		if _, err := stream.Write(frame); err == nil {
			t.Error("the host still waits")
		}
	})
}

// chatter has much to tell one other after its first step.
type chatter struct {
	collective.Machine
	to topology.PeerID
}

func (m chatter) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	if e.Kind == averaging.StepDone {
		for range 60 {
			actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Tell, Peer: m.to}, Message: collective.Message{Kind: 1}})
		}
	}
	return m.Machine.Decide(now, e, actions)
}

// TestCloseDoesNotWaitForWords: a partner that takes each of many words a moment before
// it would be too late does not keep a peer from closing.
func TestCloseDoesNotWaitForWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Window: 32})
		rogue, err := network.Transport("rogue")
		if err != nil {
			t.Fatal(err)
		}
		defer rogue.Close()
		var taken atomic.Int64
		stop, err := rogue.Handle(transport.ProtocolExchange, "digits", func(stream transport.Stream) {
			defer stream.Reset()
			for frames := wire.NewReader(stream, 0); ; taken.Add(1) {
				time.Sleep(peer.Stall / 3)
				if _, _, err := frames.Next(); err != nil {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		host := start(t, peer.Config{
			Run:     "digits",
			Params:  newModel(),
			Network: inMemory(t, network, "host", "digits"),
			Training: peer.Training{Exchange: peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
				m, err := averaging.NewADPSGD(c)
				return chatter{collective.Of(m), rogue.Self()}, err
			}}},
		})
		if _, err := rogue.Connect(t.Context(), "mem:host"); err != nil {
			t.Fatal(err)
		}
		if err := step(t, host, idle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * peer.Stall)
		began := time.Now()
		host.Close()
		took := time.Since(began)
		if n := taken.Load(); n < 2 || n > 30 {
			t.Errorf("%d words were taken: the partner is not slow, or takes none", n)
		}
		if took > 2*peer.Stall {
			t.Errorf("closing took %s", took)
		}
	})
}

package peer_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// eager is a machine whose active side begins the next exchange, of so many, as soon
// as one has ended.
type eager struct {
	averaging.Machine
	left atomic.Int64
	done chan struct{}
}

func (m *eager) build(c averaging.Config) (averaging.Machine, error) {
	inner, err := averaging.NewADPSGD(c)
	m.Machine = inner
	return m, err
}

// Handle implements averaging.Machine.
func (m *eager) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	actions = m.Machine.Handle(now, event, actions)
	over := event.Kind == averaging.Finished || event.Kind == averaging.Refused || event.Kind == averaging.Failed
	if !over || event.Inbound {
		return actions
	}
	if event.Kind == averaging.Finished && m.left.Add(-1) == 0 {
		m.done <- struct{}{}
	}
	if m.left.Load() > 0 {
		had := len(actions)
		actions = m.Machine.Handle(now, averaging.Event{Kind: averaging.StepDone}, actions)
		kept := slices.DeleteFunc(actions[had:], func(a averaging.Action) bool { return a.Kind == averaging.Proceed })
		actions = actions[:had+len(kept)]
	}
	return actions
}

// onlookers are the ways in which a peer is watched.
var onlookers = map[string]func(*testing.B, *peer.Config) (look func(*peer.Peer)){
	"nobody": func(*testing.B, *peer.Config) func(*peer.Peer) { return nil },
	"hooks": func(_ *testing.B, c *peer.Config) func(*peer.Peer) {
		c.Training.Hooks = peer.Hooks{
			Exchanged:   func(peer.Exchanged) {},
			Quarantined: func(transport.PeerID, time.Duration, error) {},
		}
		return nil
	},
	// A scrape every second, but for the text that is made of it.
	"scrapes": func(*testing.B, *peer.Config) func(*peer.Peer) {
		return func(p *peer.Peer) { p.Stats(); p.Counters(); p.Members(); p.State() }
	},
}

// watch has somebody look every second, until the benchmark is over.
func watch(b *testing.B, p *peer.Peer, look func(*peer.Peer)) {
	if look == nil {
		return
	}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			look(p)
			select {
			case <-over:
				return
			case <-ticker.C:
			}
		}
	}()
	b.Cleanup(func() { close(over); <-gone })
}

func startWatched(b *testing.B, network *memnet.Network, name string, config peer.Config) *peer.Peer {
	tr, err := network.Transport(name)
	if err != nil {
		b.Fatal(err)
	}
	membership, err := network.Membership(tr, "digits")
	if err != nil {
		b.Fatal(err)
	}
	config.Run, config.Params = "digits", newModel()
	config.Network.Transport, config.Network.Membership = tr, membership
	p, err := peer.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
		_ = tr.Close()
	})
	return p
}

// BenchmarkWatchedStep measures a step whose gradient takes no time, unwatched and
// watched: what counting and looking cost is in it whole.
func BenchmarkWatchedStep(b *testing.B) {
	for name, by := range onlookers {
		b.Run(name, func(b *testing.B) {
			config := peer.Config{}
			alone(&config)
			look := by(b, &config)
			p := startWatched(b, memnet.New(memnet.Config{}), "only", config)
			watch(b, p, look)
			gradient := func(x, grad tensor.Vector) (peer.Result, error) { return towards(0, x, grad) }
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Step(b.Context(), gradient); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWatchedExchange measures an exchange of a small model in memory likewise.
func BenchmarkWatchedExchange(b *testing.B) {
	for name, by := range onlookers {
		b.Run(name, func(b *testing.B) {
			network := memnet.New(memnet.Config{})
			var active *peer.Peer
			var machine *eager
			for i, self := range []string{"0", "1"} {
				machine = &eager{done: make(chan struct{}, 1)}
				config := peer.Config{Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Machine: machine.build}}}
				look := by(b, &config)
				if i > 0 {
					config.Join, config.Network.Reach = []string{"mem:0"}, peer.Unreachable
				}
				active = startWatched(b, network, self, config)
				watch(b, active, look)
			}
			for active.Stats().Role != "active" {
				time.Sleep(time.Millisecond)
			}
			machine.left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			if err := active.Step(b.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return peer.Result{}, nil }); err != nil {
				b.Fatal(err)
			}
			<-machine.done
			b.StopTimer()
		})
	}
}

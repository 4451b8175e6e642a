package peer_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

type vector = tensor.Vector

const (
	// stepTime is how long a gradient takes in these tests.
	stepTime = 10 * time.Millisecond
	// controlPatience is how long what must happen over real sockets may take on a busy machine.
	controlPatience = time.Minute
)

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(controlPatience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", controlPatience, what)
		}
	}
}

// ruled is a flock that trains in the background under an operator.
type ruled struct {
	*peertest.Flock
	t        *testing.T
	operator control.Operator
	trainers sync.WaitGroup
	ends     [100]error // of each trainer; read after wait
}

// operatorID is the operator that a network of seed 0 will have.
func operatorID(t *testing.T) transport.PeerID {
	t.Helper()
	tr, err := memnet.New(memnet.Config{}).Transport("operator")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	return tr.Self()
}

// startRuled starts a flock that obeys an operator. more may change configurations.
func startRuled(t *testing.T, peers int, more func(i int, c *peer.Config)) *ruled {
	t.Helper()
	r := &ruled{t: t, operator: control.Operator{Run: peertest.Run}}
	r.Flock = peertest.Start(t, r.config(peers, operatorID(t), more))
	tr, err := r.Network.Transport("operator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	r.operator.Transport = tr
	return r
}

// config is that of a flock which obeys.
func (r *ruled) config(peers int, operator transport.PeerID, more func(i int, c *peer.Config)) peertest.Config {
	return peertest.Config{Peers: peers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(i int, c *peer.Config) {
		c.Training.Exchange.Pace.Every = 4
		c.Network.Control.Operator = operator
		if more != nil {
			more(i, c)
		}
	}}
}

// train lets peer i take steps, each of which takes a time, until its run is over.
func (r *ruled) train(i int, stepTime time.Duration) {
	p, gradient := r.Peers[i], atPace(stepTime, towards)
	r.trainers.Go(func() {
		for r.ends[i] == nil {
			r.ends[i] = p.Step(r.t.Context(), func(x, grad vector) (peer.Result, error) { return gradient(i, x, grad) })
		}
	})
}

func (r *ruled) trainAll() {
	for i := range r.Peers {
		r.train(i, stepTime)
	}
}

func (r *ruled) send(to int, commands ...control.Command) {
	r.t.Helper()
	id, err := r.operator.Transport.Connect(r.t.Context(), r.Peers[to].JoinAddresses()[0])
	if err == nil {
		_, err = r.operator.Send(r.t.Context(), id, commands...)
	}
	if err != nil {
		r.t.Fatalf("the operator's commands: %v", err)
	}
}

// all tells whether something is so of all peers.
func (r *ruled) all(is func(*peer.Peer) bool) bool {
	return !slices.ContainsFunc(r.Peers, func(p *peer.Peer) bool { return !is(p) })
}

// end stops the run and waits for the trainers, whose steps say so.
func (r *ruled) end() {
	r.t.Helper()
	r.send(0, control.Command{Kind: control.Stop, Why: "the test is over"})
	r.trainers.Wait()
	for i := range r.Peers {
		if err := r.ends[i]; err != nil && !errors.Is(err, peer.ErrClosed) && (!errors.Is(err, peer.ErrRunOver) || !strings.Contains(err.Error(), "the test is over")) {
			r.t.Errorf("peer %d ends with %v", i, err)
		}
	}
}

// A pause holds every trainer within a step and a few hops, while exchanges are still
// served and nobody is taken for dead. Who joins meanwhile is paused before its first step, though
// nothing was published since it came; resume lets all go on, and stop ends the run for all with the
// reason, whoever comes after it too.
func TestPauseResumeAndStopReachEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, nil)
		r.trainAll()
		time.Sleep(time.Second)
		r.send(3, control.Command{Kind: control.Announce, Settings: map[string]string{"model": "mlp"}}, control.Command{Kind: control.Pause, Why: "lunch"})
		time.Sleep(2*stepTime + 20*time.Millisecond)
		before, _ := stepsOf(r.Flock)
		if !r.all(func(p *peer.Peer) bool { s := p.Stats().Control; return s.Paused && !s.Stopped }) {
			t.Error("not everybody is paused")
		}
		time.Sleep(10 * time.Minute / sparing)
		if after, _ := stepsOf(r.Flock); !slices.Equal(before, after) {
			t.Errorf("steps during a pause: %v, then %v", before, after)
		}
		if !r.all(func(p *peer.Peer) bool { s := p.Stats(); return s.Members == 8 && s.Lost == 0 }) {
			t.Error("somebody is taken for dead")
		}
		late := r.Add()
		r.train(8, stepTime)
		time.Sleep(10 * time.Second)
		if s := late.Stats(); s.Steps != 0 || !s.Control.Paused || s.Members != 9 {
			t.Errorf("the latecomer: %+v", s)
		}
		said, err := r.operator.Ask(t.Context(), late.Self())
		if err != nil || !slices.ContainsFunc(said, func(c control.Command) bool { return c.Kind == control.Announce && c.Settings["model"] == "mlp" }) {
			t.Errorf("the latecomer has heard %+v, %v", said, err)
		}
		r.send(8, control.Command{Kind: control.Resume})
		time.Sleep(time.Second)
		for i, p := range r.Peers {
			s := p.Stats()
			if i < len(before) && s.Steps < before[i]+50 || s.Steps == 0 || s.Exchanges.LongestHold > time.Second {
				t.Errorf("peer %d, a second after the pause: %d steps, %v before it; held for %s", i, s.Steps, before, s.Exchanges.LongestHold)
			}
		}
		r.end()
		r.Add()
		r.train(9, stepTime)
		r.trainers.Wait()
		if err := r.ends[9]; !errors.Is(err, peer.ErrRunOver) || r.Peers[9].Stats().Steps != 0 {
			t.Errorf("who comes to a stopped run takes %d steps and gets %v", r.Peers[9].Stats().Steps, err)
		}
	})
}

// Over libp2p and gossipsub: what an operator tells one peer reaches all, a latecomer
// is paused before its first step, digests go round, and stop ends the run.
func TestControlOverLoopback(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	r := &ruled{t: t, operator: control.Operator{Transport: tr, Run: peertest.Run}}
	config := r.config(3, tr.Self(), func(_ int, c *peer.Config) { c.Network.Control.Digests = time.Second })
	config.Loopback = true
	r.Flock = peertest.Start(t, config)
	r.trainAll()
	soon(t, "everybody trains and knows of the others", func() bool {
		return r.all(func(p *peer.Peer) bool {
			return p.Stats().Steps > 0 && len(p.Digests()) == 3 && p.Stats().Control.Neighbours == 2
		})
	})
	paused := func(p *peer.Peer) bool { return p.Stats().Control.Paused }
	r.send(0, control.Command{Kind: control.Pause, Why: "lunch"})
	soon(t, "everybody is paused", func() bool { return r.all(paused) })
	late := r.Add()
	r.train(3, stepTime)
	soon(t, "the latecomer has joined", func() bool { return late.Stats().Members == 4 && paused(late) })
	if s := late.Stats(); s.Steps != 0 {
		t.Errorf("the latecomer has taken %d steps in a pause", s.Steps)
	}
	r.send(0, control.Command{Kind: control.Resume})
	soon(t, "the latecomer trains", func() bool { return late.Stats().Steps > 0 })
	r.end()
}

// Step gives up waiting when its context ends, and when the peer closes.
func TestPausedStepHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, nil)
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		step := func(x, grad vector) (peer.Result, error) { return towards(0, x, grad) }
		if err := r.Peers[0].Step(ctx, step); !errors.Is(err, ctx.Err()) {
			t.Errorf("a step that waits too long: %v", err)
		}
		done := make(chan error)
		go func() { done <- r.Peers[1].Step(t.Context(), step) }()
		time.Sleep(time.Second)
		r.Peers[1].Close()
		if err := <-done; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("a step of a peer that closes: %v", err)
		}
	})
}

// A change takes effect at its step of the flock, not before, for everybody, those
// who come later included; parts that are not named stay.
func TestScheduleChangesAtItsStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 4, func(_ int, c *peer.Config) {
			c.Training.Work = peer.Work{Steps: 40_000}
			c.Training.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant}
		})
		r.trainAll()
		time.Sleep(time.Second) // 400 steps of the flock in a second
		const at = 2000
		r.send(0, control.Command{Kind: control.SetSchedule, At: at, Schedule: optim.Schedule{Rate: 0.02, Shape: optim.Constant}},
			control.Command{Kind: control.SetPace, At: at, Every: 9},
			control.Command{Kind: control.SetWork, At: at, Steps: 8000})
		time.Sleep(time.Second)
		for i, p := range r.Peers {
			if s := p.Stats(); s.FlockSteps >= at || s.Rate != 0.1 || s.Exchanges.Every != 4 || s.Target != 40_000 {
				t.Errorf("peer %d before its step: %+v", i, s)
			}
		}
		time.Sleep(6 * time.Second)
		late := r.Add()
		r.train(4, stepTime)
		time.Sleep(5 * time.Second)
		for i, p := range r.Peers {
			if s := p.Stats(); s.FlockSteps < at || s.Rate != 0.02 || s.Exchanges.Every != 9 || s.Target != 8000 {
				t.Errorf("peer %d after its step: %+v", i, s)
			}
		}
		r.trainers.Wait()
		for i, p := range r.Peers {
			if s := p.Stats(); !s.Over || s.FlockSteps < 8000 || s.FlockSteps > 9000 || p.Stats().Control.Stopped {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
		if late.Stats().Steps == 0 {
			t.Error("the latecomer took no step")
		}
	})
}

// Resume in a run that is paused lets it end too, if its work was done meanwhile; and
// a run whose work is lowered below what is done ends at once, paused or not.
func TestPausedRunEndsWhenItsWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 4, func(_ int, c *peer.Config) { c.Training.Work = peer.Work{Steps: 1_000_000} })
		r.trainAll()
		time.Sleep(time.Second)
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(time.Minute)
		r.send(1, control.Command{Kind: control.SetWork, Steps: 100})
		r.trainers.Wait()
		for i, p := range r.Peers {
			if s := p.Stats(); !s.Over {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
	})
}

// Every member knows what all others are about, as they say it themselves, and those
// who have gone are left out.
func TestDigestsTellOfEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, func(_ int, c *peer.Config) { c.Training.Exchange.Pace.Every = 1 })
		for i := range r.Peers {
			r.train(i, stepTime+time.Duration(i)*stepTime/64) // in step, nobody might ever find its partner busy
		}
		time.Sleep(20 * time.Second)
		refused := uint64(0)
		for i, p := range r.Peers {
			refused += p.Stats().Exchanges.Refused
			digests := p.Digests()
			if len(digests) != 8 {
				t.Fatalf("peer %d has %d digests", i, len(digests))
			}
			all, counted := uint64(0), uint64(0)
			for k, d := range digests {
				counted += d.Exchanges
				if k > 0 && d.ID <= digests[k-1].ID {
					t.Error("digests are out of order")
				}
				if d.State != control.Training || d.Steps < 1000 || d.FlockSteps < 8000 || d.Exchanges == 0 || math.IsNaN(d.Loss) || d.ConsensusDistance <= 0 {
					t.Errorf("peer %d has %+v", i, d)
				}
				if d.Failed != 0 { // proposals that were refused are no failures
					t.Errorf("peer %d: %s tells of %d exchanges that failed", i, d.ID.Short(), d.Failed)
				}
				if d.Samples < 80 || d.Samples > 120 { // one a step, a step each 10 ms
					t.Errorf("peer %d: %s learns from %v samples a second", i, d.ID.Short(), d.Samples)
				}
				var began uint64
				for _, m := range d.Partners {
					if m.Partner == "" || m.Partner == d.ID {
						t.Errorf("peer %d: %s has met %+v", i, d.ID.Short(), m)
					}
					began += m.Exchanges
				}
				all += began
				if began > d.Exchanges {
					t.Errorf("peer %d: %s began %d exchanges of %d", i, d.ID.Short(), began, d.Exchanges)
				}
				if age := time.Since(d.Received); age > control.DefaultDigests+time.Second {
					t.Errorf("peer %d: the digest of %s is %v old", i, d.ID.Short(), age)
				}
			}
			if ratio := float64(all) / float64(counted); ratio < 0.45 || ratio > 0.55 { // both sides count an exchange, one begins it
				t.Errorf("peer %d: %d exchanges with partners, %d counted", i, all, counted)
			}
		}
		if refused == 0 {
			t.Error("no proposal was refused: nothing is shown of how they are counted")
		}
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(2 * control.DefaultDigests)
		for _, d := range r.Peers[1].Digests() {
			if d.State != control.Paused || d.Samples > 80 {
				t.Errorf("in a pause: %+v", d)
			}
		}
		r.Peers[7].Close()
		time.Sleep(time.Second)
		if n := len(r.Peers[0].Digests()); n != 7 {
			t.Errorf("%d digests after one has gone", n)
		}
		r.end()
	})
}

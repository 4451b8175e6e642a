package peer_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// stepTime is how long a gradient takes in these tests.
const stepTime = 10 * time.Millisecond

// ruled is a flock that trains in the background under an operator.
type ruled struct {
	*peertest.Flock
	t        *testing.T
	operator control.Operator
	trainers sync.WaitGroup
	ends     []error // of each trainer; read after wait
}

// operatorID is the operator that a network of seed 0 will have.
func operatorID(t *testing.T) transport.PeerID { return idOf(t, "operator") }

func idOf(t *testing.T, name string) transport.PeerID {
	t.Helper()
	tr, err := memnet.New(memnet.Config{}).Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	return tr.Self()
}

// startRuled starts a flock that obeys an operator. more may change configurations.
func startRuled(t *testing.T, peers int, more func(i int, c *peer.Config)) *ruled {
	t.Helper()
	id := operatorID(t)
	flock := peertest.Start(t, peertest.Config{
		Peers: peers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(i int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 4
			c.Network.Control.Operator = id
			if more != nil {
				more(i, c)
			}
		},
	})
	r := &ruled{Flock: flock, t: t, ends: make([]error, 100)}
	r.operator = control.Operator{Transport: r.outsider("operator"), Run: peertest.Run}
	return r
}

// outsider is a transport of somebody who is no member.
func (r *ruled) outsider(name string) transport.Transport {
	r.t.Helper()
	tr, err := r.Network.Transport(name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { tr.Close() })
	return tr
}

// train lets peer i take steps until its run is over.
func (r *ruled) train(i int) { r.trainAt(i, stepTime) }

// trainAt does so with steps that take a time.
func (r *ruled) trainAt(i int, step time.Duration) {
	p := r.Peers[i]
	gradient := atPace(step, towards)
	r.trainers.Go(func() {
		for r.ends[i] == nil {
			r.ends[i] = p.Step(r.t.Context(), func(x, grad vector) (peer.Result, error) { return gradient(i, x, grad) })
		}
	})
}

func (r *ruled) trainAll() {
	for i := range r.Peers {
		r.train(i)
	}
}

func (r *ruled) send(to int, commands ...control.Command) {
	r.t.Helper()
	if _, err := r.operator.Send(r.t.Context(), r.Peers[to].Self(), commands...); err != nil {
		r.t.Fatalf("the operator's commands: %v", err)
	}
}

// steps are those of each peer.
func (r *ruled) steps() (steps []uint64) {
	for _, p := range r.Peers {
		steps = append(steps, p.Stats().Steps)
	}
	return steps
}

// end stops the run and waits for the trainers.
func (r *ruled) end() {
	r.t.Helper()
	r.send(0, control.Command{Kind: control.Stop, Why: "the test is over"})
	r.trainers.Wait()
}

// A pause holds every trainer within a step and a few hops, while exchanges are still
// served and nobody is taken for dead; resume lets all go on, and stop ends the run
// for all with the reason.
func TestPauseResumeAndStopReachEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, nil)
		r.trainAll()
		time.Sleep(time.Second)
		r.send(3, control.Command{Kind: control.Pause, Why: "lunch"})
		time.Sleep(2*stepTime + 20*time.Millisecond)
		before := r.steps()
		for i, p := range r.Peers {
			if s := p.Stats().Control; !s.Paused || s.Stopped {
				t.Errorf("peer %d is not paused: %+v", i, s)
			}
		}
		time.Sleep(time.Minute)
		if after := r.steps(); !equal(before, after) {
			t.Errorf("steps during a pause: %v, then %v", before, after)
		}
		for i, p := range r.Peers {
			if s := p.Stats(); s.Members != 8 || s.Lost != 0 {
				t.Errorf("peer %d sees %d members, %d lost", i, s.Members, s.Lost)
			}
		}
		r.send(5, control.Command{Kind: control.Resume})
		time.Sleep(time.Second)
		for i, steps := range r.steps() {
			if steps < before[i]+50 {
				t.Errorf("peer %d has taken %d steps in a second after the pause", i, steps-before[i])
			}
			if hold := r.Peers[i].Stats().Exchanges.LongestHold; hold > time.Second {
				t.Errorf("peer %d counts the pause as a hold of %v", i, hold)
			}
		}
		r.end()
		for i := range r.Peers {
			if err := r.ends[i]; !errors.Is(err, peer.ErrRunOver) || !strings.Contains(err.Error(), "the test is over") {
				t.Errorf("peer %d ends with %v", i, err)
			}
		}
	})
}

// Step gives up waiting when its context ends, and when the peer closes.
func TestPausedStepHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, nil)
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(time.Second)
		ctx, cancel := within(t, time.Second)
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

// A joiner to a paused run is paused before its first step, though nothing was
// published since it came; so is one that comes to a stopped run stopped.
func TestLatecomerHearsWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, nil)
		r.trainAll()
		time.Sleep(time.Second)
		r.send(0, control.Command{Kind: control.Announce, Settings: map[string]string{"model": "mlp"}},
			control.Command{Kind: control.Pause, Why: "lunch"})
		time.Sleep(10 * time.Minute / sparing)
		late := r.Add()
		r.train(8)
		time.Sleep(10 * time.Second)
		if s := late.Stats(); s.Steps != 0 || !late.Stats().Control.Paused || s.Members != 9 {
			t.Errorf("the latecomer: %+v, %+v", s, late.Stats().Control)
		}
		said, err := r.operator.Ask(t.Context(), late.Self())
		if err != nil || !slices.ContainsFunc(said, func(c control.Command) bool { return c.Kind == control.Announce && c.Settings["model"] == "mlp" }) {
			t.Errorf("the latecomer has heard %+v", said)
		}
		r.send(8, control.Command{Kind: control.Resume})
		time.Sleep(time.Second)
		if s := late.Stats(); s.Steps == 0 {
			t.Errorf("the latecomer does not train: %+v", s)
		}
		r.end()
		r.Add()
		r.train(9)
		r.trainers.Wait()
		if err := r.ends[9]; !errors.Is(err, peer.ErrRunOver) || r.Peers[9].Stats().Steps != 0 {
			t.Errorf("who comes to a stopped run takes %d steps and gets %v", r.Peers[9].Stats().Steps, err)
		}
	})
}

// A peer that was cut off when the operator spoke hears it when it is back.
func TestPartitionedPeerHearsWhenItIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 4, nil)
		r.trainAll()
		time.Sleep(time.Second)
		ids := r.IDs()
		r.Network.Partition(ids[:3], ids[3:])
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(5 * time.Minute / sparing)
		if r.Peers[3].Stats().Control.Paused {
			t.Error("a word crossed a cut link")
		}
		r.Network.HealAll()
		time.Sleep(30 * time.Second)
		if !r.Peers[3].Stats().Control.Paused {
			t.Error("not paused 30 s after the cut was mended")
		}
		r.end()
	})
}

// A peer that nobody rules and that tells nothing takes no part in a topic.
func TestZeroControlTakesNoPartInATopic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, func(_ int, c *peer.Config) { c.Network.Control = control.Config{} })
		r.trainAll()
		ear := r.publisher(r.outsider("ear"))
		time.Sleep(time.Minute)
		if n := ear.Neighbours(); n != 0 || len(ear.heard) != 0 {
			t.Errorf("%d neighbours, %d messages", n, len(ear.heard))
		}
		for i, p := range r.Peers {
			if digests := p.Digests(); len(digests) != 1 || digests[0].ID != p.Self() || digests[0].Steps == 0 {
				t.Errorf("peer %d has digests %+v", i, digests)
			}
			p.Close()
		}
		r.trainers.Wait()
	})
}

// publisher takes part in a topic from outside and hears what goes round.
type publisher struct {
	transport.Topic
	heard chan string
}

func (r *ruled) publisher(at transport.Transport) publisher {
	r.t.Helper()
	p := publisher{heard: make(chan string, 1000)}
	topic, err := at.Topic("murmuration/1/"+peertest.Run, nil, func(_ transport.PeerID, message []byte) transport.Verdict {
		p.heard <- string(message)
		return transport.Drop
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { topic.Close() })
	p.Topic = topic
	return p
}

// topicless is a transport that has no topics.
type topicless struct{ transport.Transport }

func (topicless) Topic(string, func(transport.PeerID) bool, transport.TopicHandler) (transport.Topic, error) {
	return nil, transport.ErrNoTopics
}

// Without a topic, members that are asked tell what the operator has said.
func TestWordSpreadsWithoutATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, func(_ int, c *peer.Config) { c.Network.Transport = topicless{c.Network.Transport} })
		r.send(0, control.Command{Kind: control.Pause})
		began := time.Now()
		for i, p := range r.Peers {
			for !p.Stats().Control.Paused {
				if time.Sleep(time.Second); time.Since(began) > 2*time.Minute {
					t.Fatalf("peer %d has not heard of it in %v", i, time.Since(began))
				}
			}
		}
		t.Logf("everybody has heard after %v", time.Since(began))
	})
}

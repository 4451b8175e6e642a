package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// hostile is the machine of one that proposes to one passive after the other, the next
// as soon as the last has ended, and never waits for its own steps.
type hostile struct {
	self   topology.PeerID
	target []topology.PeerID
	id     averaging.ExchangeID
}

func (h *hostile) Handle(_ time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	const wait = time.Millisecond // after a refusal, or nothing else would happen
	next := func() []averaging.Action {
		h.id++
		to := h.target[int(h.id)%len(h.target)]
		return append(actions, averaging.Action{Kind: averaging.Propose, Peer: to, Exchange: h.id, Overlap: 1})
	}
	again := averaging.Action{Kind: averaging.SetTimer, Timer: averaging.OutboundDeadline, After: wait}
	switch e.Kind {
	case averaging.StepDone:
		actions = append(actions, averaging.Action{Kind: averaging.Proceed})
		if h.id == 0 && len(h.target) > 0 {
			return next()
		}
	case averaging.Finished, averaging.TimerFired:
		return next()
	case averaging.Refused, averaging.Failed:
		return append(actions, again)
	case averaging.Proposed:
		return append(actions, averaging.Action{Kind: averaging.Refuse, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Reason: averaging.Busy})
	}
	return actions
}

// siege is a flock of honest peers, all of the same model, and some that are hostile.
type siege struct {
	hostile  int
	stranger bool // the hostile are no members
	silent   bool // the hostile say nothing after an acceptance
	pace     int  // honest steps between two exchanges
	alike    bool // each hostile one keeps to one passive
	quiet    bool // the hostile propose nothing
}

// besieged is what became of a flock.
type besieged struct {
	mean    float64 // parameter of the honest
	honest  int     // exchanges that honest peers initiated
	refused float64 // share of honest proposals
	hostile int     // exchanges that all hostile peers initiated
	each    float64 // exchanges that an honest active peer initiated
	served  int     // exchanges that the passive peer served which served the fewest
}

// endure runs a siege for a time. Honest models are all 21, hostile ones at −1e6 for ever.
func (s siege) endure(t *testing.T, honest int, within time.Duration) (b besieged) {
	t.Helper()
	total := honest + s.hostile
	members := total
	if s.stranger {
		members = honest
	}
	var targets []topology.PeerID
	liar := make([]bool, total)
	left := s.hostile
	for i, role := range roles(t, members) {
		if role == topology.Passive {
			targets = append(targets, nameOf(i))
		} else if left > 0 && !s.stranger {
			liar[i] = true // an active one
			left--
		}
	}
	isHonest := func(peer int) bool { return !liar[peer] && peer < members }
	shown := make(tensor.Vector, 40)
	for i := range shown {
		shown[i] = -1e6
	}
	var f *flock
	f = newFlock(t, plan{
		seed: 91, peers: total, values: len(shown), sliceLen: 10, every: s.pace, retry: 5 * time.Second,
		initial: func(_ *rand.Rand, peer int, x tensor.Vector) {
			for i := range x {
				x[i] = 21
			}
		},
		machine: func(i int) averaging.Machine {
			if isHonest(i) {
				return nil
			}
			at := targets[i%len(targets):]
			switch {
			case s.quiet:
				at = nil
			case s.alike:
				at = at[:1]
			}
			return &hostile{self: nameOf(i), target: at}
		},
		stranger: func(peer int) bool { return s.stranger && !isHonest(peer) },
		config: sim.Config{
			Task: direct{stepper: idle{}}, Link: sim.Link{Delay: 200 * time.Microsecond, Bandwidth: 1e7}, Stall: 2500 * time.Millisecond,
			Terms: replica.Terms{Window: 4},
			Hooks: sim.Hooks{Opened: func(stream *sim.Stream) {
				from := stream.From()
				if isHonest(from) {
					return
				}
				if err := f.replicas[from].RestoreShared(shown); err != nil {
					t.Fatal(err)
				}
				if s.silent {
					stream.Tamper(from, onlyTheFirst())
				}
			}},
		},
	})
	f.world.Run(within)
	refused, actives := 0, 0
	b.served = math.MaxInt
	for i := range total {
		c := f.world.Counts(i)
		if !isHonest(i) {
			b.hostile += c.Initiated
			continue
		}
		b.honest += c.Initiated
		actives += min(c.Initiated, 1)
		if slices.Contains(targets, nameOf(i)) {
			b.served = min(b.served, c.Served)
		}
		refused += c.Refused
	}
	b.each = float64(b.honest) / float64(max(actives, 1))
	b.refused = float64(refused) / float64(max(refused+b.honest, 1))
	for _, x := range f.mean(isHonest) {
		b.mean += float64(x) / float64(len(shown))
	}
	return b
}

// onlyTheFirst lets one frame through, the proposal.
func onlyTheFirst() sim.Tamper {
	said := false
	return func(frame []byte) [][]byte {
		if said {
			return nil
		}
		said = true
		return [][]byte{frame}
	}
}

// TestAStrangerBackToBackIsNotServed: who is no member gets nothing and keeps nobody out.
func TestAStrangerBackToBackIsNotServed(t *testing.T) {
	t.Parallel()
	const within = 650 * time.Millisecond
	clean := siege{pace: 4}.endure(t, 8, within)
	got := siege{hostile: 1, stranger: true, pace: 4}.endure(t, 8, within)
	t.Logf("alone %+v; with a stranger %+v", clean, got)
	if got.hostile > 0 || math.Abs(got.mean-21) > 1e-3 || got.refused > clean.refused+0.05 {
		t.Errorf("%+v, want nothing served, a mean of 21 and as few refused as without it: %+v", got, clean)
	}
}

// TestAMemberBackToBackHasAShare: a member that comes as often as it can has about as
// much as an honest one that comes as often as it should, and the honest are as seldom
// refused.
func TestAMemberBackToBackHasAShare(t *testing.T) {
	t.Parallel()
	const within = 4 * time.Second
	for _, s := range []siege{{hostile: 1, pace: 4}, {hostile: 1, pace: 1}, {hostile: 1, pace: 16}, {hostile: 1, pace: 4, alike: true}} {
		clean := siege{hostile: 1, quiet: true, pace: s.pace}.endure(t, 8, within)
		got := s.endure(t, 8, within)
		t.Logf("H = %d: alone %+v; with a member %+v", s.pace, clean, got)
		const burst = 4 // at each of four passives
		if most := 2.5*got.each + 4*burst; float64(got.hostile) > most {
			t.Errorf("H = %d: it had %d exchanges, an honest peer %.0f: at most %.0f", s.pace, got.hostile, got.each, most)
		}
		if got.refused > clean.refused+0.03 || got.each < 0.95*clean.each {
			t.Errorf("H = %d: %.1f %% of the honest proposals were refused and each had %.0f exchanges; %.1f %% and %.0f without it",
				s.pace, 100*got.refused, got.each, 100*clean.refused, clean.each)
		}
	}
}

// TestTheSilentHoldNoPlace: who proposes and then says nothing, again and again, takes
// little from the others, member or not.
func TestTheSilentHoldNoPlace(t *testing.T) {
	t.Parallel()
	const within = time.Minute
	for _, stranger := range []bool{true, false} {
		clean := siege{hostile: 1, stranger: stranger, quiet: true, pace: 4}.endure(t, 8, within)
		got := siege{hostile: 1, stranger: stranger, silent: true, pace: 4, alike: true}.endure(t, 8, within)
		t.Logf("a stranger %v: a passive served %d at least, %d without it", stranger, got.served, clean.served)
		if got.served < clean.served*8/10 {
			t.Errorf("a stranger %v: a passive served %d, %d without it: at least 80 %%", stranger, got.served, clean.served)
		}
	}
}

// unhurried is idle with a fifth of the steps: waits of seconds weigh the same.
type unhurried struct{ idle }

func (u unhurried) Duration(peer, step, samples int) time.Duration {
	return 5 * u.idle.Duration(peer, step, samples)
}

// muted is a flock in which one passive says nothing after so many bytes, until some moment, in
// the streams that were opened before.
func muted(t *testing.T, peers, bytes int, until time.Duration, busy bool) (f *flock, passive int) {
	t.Helper()
	passive = slices.Index(roles(t, peers), topology.Passive)
	f = newFlock(t, plan{
		seed: 92, peers: peers, values: 40, sliceLen: 10, retry: 5 * time.Second,
		machine: func(i int) averaging.Machine {
			machine, err := averaging.NewADPSGD(averaging.Config{Self: nameOf(i), Rand: rand.New(rand.NewPCG(92, uint64(i)))})
			if err != nil {
				t.Fatal(err)
			}
			if busy && i == passive {
				return refusing{machine}
			}
			return machine
		},
		config: sim.Config{
			Task: direct{stepper: unhurried{}}, Link: sim.Link{Delay: 200 * time.Microsecond, Bandwidth: 1e7}, Stall: 5 * time.Second,
			Terms: replica.Terms{Window: 4},
			Hooks: sim.Hooks{Opened: func(s *sim.Stream) {
				if s.To() == passive && f.world.Now() < until {
					s.StallAfter(passive, int64(bytes))
				}
			}},
		},
	})
	return f, passive
}

// refusing is a machine that says it is busy, whatever is proposed.
type refusing struct{ averaging.Machine }

func (r refusing) Handle(now time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	if e.Kind == averaging.Proposed {
		return append(actions, averaging.Action{Kind: averaging.Refuse, Peer: e.Peer, Exchange: e.Exchange, Inbound: true, Reason: averaging.Busy})
	}
	return r.Machine.Handle(now, e, actions)
}

// acceptance is about as long as an ACCEPT.
const acceptance = 60

// TestTheSilentPassiveCostsLittle: a passive member that says nothing, or nothing more once it
// has accepted, or always that it is busy, takes from the actives little more than its part of
// their partners. One that accepts is waited for as one whose link is slow, which costs most in the first minutes.
func TestTheSilentPassiveCostsLittle(t *testing.T) {
	t.Parallel()
	moments := []time.Duration{2 * time.Minute, 10 * time.Minute}
	exchanges := func(peers, bytes int, until time.Duration, busy bool, moments []time.Duration) (n []int) {
		f, _ := muted(t, peers, bytes, until, busy)
		for i, moment := range moments {
			f.world.Run(moment)
			n = append(n, 0)
			for peer := range peers {
				n[i] += f.world.Counts(peer).Initiated
			}
		}
		return n
	}
	clean := map[int][]int{4: exchanges(4, 0, 0, false, moments), 8: exchanges(8, 0, 0, false, moments[:1])}
	for _, c := range []struct {
		peers, bytes int
		busy         bool
		least        []int // percent, at each moment
	}{
		{4, 0, false, []int{94}}, {8, 0, false, []int{94}}, {4, 0, true, []int{98}}, {8, 0, true, []int{98}},
		{4, acceptance, false, []int{88, 95}}, {8, acceptance, false, []int{92}},
	} {
		until := moments[len(moments)-1]
		if c.busy {
			until = 0
		}
		for i, got := range exchanges(c.peers, c.bytes, until, c.busy, moments[:len(c.least)]) {
			said := fmt.Sprintf("%d peers, one silent after %d bytes, or busy %v: after %s", c.peers, c.bytes, c.busy, moments[i])
			t.Logf("%s %d exchanges, %d without it", said, got, clean[c.peers][i])
			if share := 100 * got / clean[c.peers][i]; share < c.least[i] {
				t.Errorf("%s %d %% of the exchanges, want %d", said, share, c.least[i])
			}
		}
	}
}

// TestWhoWasSilentIsAskedAgain: a passive that has been frozen, and that others still take for a
// member, has an exchange again after about as long as it was silent, and some forty seconds.
func TestWhoWasSilentIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{0, acceptance} {
		for _, silence := range []time.Duration{time.Second, 20 * time.Second, time.Minute, 3 * time.Minute} {
			f, passive := muted(t, 4, bytes, silence, false)
			most := silence + 50*time.Second // the waits for it are silence too
			f.world.Run(silence)
			for f.world.Counts(passive).Served == 0 && f.world.Now() < silence+most {
				f.world.Run(f.world.Now() + time.Second)
			}
			after := f.world.Now() - silence
			t.Logf("silent for %s after %d bytes: an exchange within %s", silence, bytes, after)
			if f.world.Counts(passive).Served == 0 {
				t.Errorf("silent for %s after %d bytes: no exchange in %s", silence, bytes, after)
			}
		}
	}
}

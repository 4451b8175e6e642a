package until

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

var start = time.Unix(1000, 0)

// flock is judges in virtual time, with messages that take up to a second, and members that evaluate every second.
type flock struct {
	judges  []*Judge
	honest  func(at time.Duration) float64 // the accuracy of an honest member then
	lie     map[int]Said                   // what liars say, whatever they hear
	late    map[int]time.Duration          // when members begin that do not begin at once
	random  *rand.Rand
	ended   []time.Duration
	reasons []Reason
	flying  []flying
}

type flying struct {
	at       time.Duration
	from, to int
	said     Said
}

func id(i int) topology.PeerID { return topology.PeerID(fmt.Sprint(i)) }

// run runs the flock for so long at most; each member ends by itself.
func (f *flock) run(peers int, aim Aim, limit time.Duration) {
	f.judges, f.ended, f.reasons = make([]*Judge, peers), make([]time.Duration, peers), make([]Reason, peers)
	members := make([]topology.PeerID, peers)
	for i := range peers {
		members[i] = id(i)
		f.judges[i] = New(id(i), aim, start.Add(f.late[i]))
	}
	const tick = 100 * time.Millisecond
	for at := time.Duration(0); at <= limit; at += tick {
		now := start.Add(at)
		f.flying = slices.DeleteFunc(f.flying, func(m flying) bool {
			if m.at > at {
				return false
			}
			if m.said.Heard = now; at >= f.late[m.to] {
				f.judges[m.to].Heard(id(m.from), m.said)
			}
			return true
		})
		for i, j := range f.judges {
			if at < f.late[i] {
				continue
			}
			phase := time.Duration(i) * tick // members evaluate by turns
			over := f.reasons[i] != GoesOn
			if at%time.Second == phase%time.Second && !over {
				j.Evaluated(f.honest(at)+0.002*f.random.NormFloat64(), 1-f.honest(at))
			}
			if at%(time.Second/2) == 0 {
				says := j.Says(now)
				if lie, lies := f.lie[i]; lies {
					lie.Heard = now
					says = lie
				}
				j.Heard(id(i), says)
				for to := range peers {
					if to != i {
						f.flying = append(f.flying, flying{at + time.Duration(f.random.Float64()*float64(time.Second)), i, to, says})
					}
				}
			}
			if why := j.Look(now, members, over); why != GoesOn {
				if f.reasons[i] == GoesOn {
					f.ended[i] = at
				}
				f.reasons[i] = why
			}
		}
	}
}

// curve rises to 1, fast at first: it is at 0.9 after 23 seconds.
func curve(at time.Duration) float64 { return 1 - math.Exp(-at.Seconds()/10) }

func flockOf(lie map[int]Said) *flock {
	return &flock{honest: curve, lie: lie, random: rand.New(rand.NewPCG(1, 2))}
}

// TestOneLiarOfEight neither ends a run nor keeps it going by more than one evaluation, and all end for the same reason.
func TestOneLiarOfEight(t *testing.T) {
	truth := flockOf(nil)
	truth.run(8, Aim{Accuracy: 0.9}, time.Minute)
	for name, lie := range map[string]Said{
		"at once":   {Accuracy: 1, Wants: Accuracy},
		"never":     {Loss: 1e300},
		"too late":  {Accuracy: 0, Wants: Deadline, Trained: 100 * time.Hour},
		"is silent": {},
	} {
		f := flockOf(map[int]Said{3: lie})
		f.run(8, Aim{Accuracy: 0.9, Deadline: 10 * time.Minute}, time.Minute)
		for i := range 8 {
			if i == 3 {
				continue
			}
			if off := (f.ended[i] - truth.ended[i]).Abs(); off > 2*time.Second || f.reasons[i] != Accuracy {
				t.Errorf("%s: member %d ends at %s for %v, without the liar at %s", name, i, f.ended[i], f.reasons[i], truth.ended[i])
			}
		}
	}
	if at := slices.Max(truth.ended); at < 22*time.Second || at > 26*time.Second {
		t.Errorf("the aim is reached at 23 s, the run ends at %s", at)
	}
}

// TestAllEndForOneReason, whichever of several comes first, for any noise and any late members.
func TestAllEndForOneReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := flockOf(nil)
		f.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		peers := rapid.IntRange(1, 9).Draw(t, "peers")
		aim := Aim{
			Accuracy: rapid.SampledFrom([]float64{0, 0.8, 0.9, 0.95}).Draw(t, "accuracy"),
			Loss:     rapid.SampledFrom([]float64{0, 0.1, 0.05}).Draw(t, "loss"),
			Plateau:  rapid.SampledFrom([]int{0, 3, 5}).Draw(t, "plateau"),
			Deadline: 40 * time.Second,
		}
		f.late = map[int]time.Duration{}
		if peers > 4 {
			f.late[peers-1] = rapid.SampledFrom([]time.Duration{0, 5 * time.Second, 12 * time.Second}).Draw(t, "late")
		}
		f.run(peers, aim, 80*time.Second)
		for i, why := range f.reasons {
			if why == GoesOn || why != f.reasons[0] {
				t.Fatalf("member %d ends for %q, member 0 for %q", i, why, f.reasons[0])
			}
			if off := f.ended[i] - f.ended[0]; off.Abs() > 2500*time.Millisecond {
				t.Fatalf("member %d ends %s after member 0", i, off)
			}
		}
		if late := slices.Max(f.ended); late > 44*time.Second {
			t.Fatalf("the run ends at %s, its deadline is at %s", late, aim.Deadline)
		}
	})
}

// TestOneOfThreeComesLate, and ends at the deadline with the others.
func TestOneOfThreeComesLate(t *testing.T) {
	f := flockOf(nil)
	f.late = map[int]time.Duration{2: 12 * time.Second}
	f.run(3, Aim{Deadline: 40 * time.Second}, time.Minute)
	for i, at := range f.ended {
		if at < 40*time.Second || at > 42*time.Second {
			t.Errorf("member %d ends at %s", i, at)
		}
	}
}

// TestPlateau: five evaluations without progress, and no fewer, end a run.
func TestPlateau(t *testing.T) {
	f := flockOf(nil)
	f.honest = func(at time.Duration) float64 { return min(curve(at), 0.75) } // after 14 s
	f.run(4, Aim{Plateau: 5}, time.Minute)
	for i, at := range f.ended {
		if f.reasons[i] != Plateau || at < 17*time.Second || at > 25*time.Second {
			t.Errorf("member %d ends at %s for %q", i, at, f.reasons[i])
		}
	}
}

// TestOfTwoNeitherEndsTheRun: the worse figure counts, and both have to want it.
func TestOfTwoNeitherEndsTheRun(t *testing.T) {
	f := flockOf(map[int]Said{1: {Accuracy: 1, Wants: Accuracy, Trained: 100 * time.Hour}})
	f.honest = func(time.Duration) float64 { return 0.5 }
	f.run(2, Aim{Accuracy: 0.9, Deadline: time.Hour}, time.Minute)
	if f.reasons[0] != GoesOn {
		t.Errorf("ended for %q", f.reasons[0])
	}
}

// TestTheBestIsTold by accuracy, or by loss where that alone is an aim; figures that are none are never better.
func TestTheBestIsTold(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		aim  Aim
		best []bool
	}{{Aim{Plateau: 1}, []bool{true, true, false, true, true, false, false}}, {Aim{Loss: 1}, []bool{true, true, false, false, true, false, true}}} {
		j := New("a", c.aim, start)
		for i, f := range [][2]float64{{nan, nan}, {nan, 2}, {nan, 2}, {0.5, nan}, {0.5, 1}, {0.4, nan}, {nan, 0.5}} {
			if best := j.Evaluated(f[0], f[1]); best != c.best[i] {
				t.Errorf("%+v: evaluation %d, of %v, is the best: %v", c.aim, i, f, best)
			}
		}
	}
}

// TestAVoteOutlivesWhoGaveIt: once over, a member that leaves keeps its vote, so that the reason stays.
func TestAVoteOutlivesWhoGaveIt(t *testing.T) {
	j := New("a", Aim{Accuracy: 0.9}, start)
	all := []topology.PeerID{"a", "b", "c"}
	for _, m := range all[1:] {
		j.Heard(m, Said{Accuracy: 0.95, Wants: Accuracy, Heard: start})
	}
	if why := j.Look(start, all, false); why != Accuracy {
		t.Fatalf("two of three want it: %q", why)
	}
	if why := j.Look(start, all[:1], true); why != Accuracy {
		t.Errorf("after they left: %q", why)
	}
	lone := New("a", Aim{}, start)
	lone.Heard("b", Said{Wants: Loss, Heard: start})
	if why := lone.Look(start, all, true); why != GoesOn {
		t.Errorf("one of three gives a reason to a run that is over: %q", why)
	}
}

// TestAllAgree once each has told that the run is over for it.
func TestAllAgree(t *testing.T) {
	j, all := New("a", Aim{}, start), []topology.PeerID{"a", "b"}
	j.Look(start, all, false)
	j.Heard("a", j.Says(start))
	j.Heard("b", Said{Over: true})
	if j.Agreed(all) {
		t.Error("agreed while the run goes on here")
	}
	j.Look(start, all, true)
	if j.Heard("a", j.Says(start)); !j.Agreed(all) || j.Agreed([]topology.PeerID{"a", "b", "c"}) {
		t.Error("not agreed, or with one that has said nothing")
	}
}

func TestFiguresThatAreNone(t *testing.T) {
	j := New("a", Aim{Accuracy: 0.5, Loss: 1}, start)
	j.Evaluated(math.NaN(), math.Inf(-1))
	j.Heard("a", j.Says(start))
	if why := j.Look(start, []topology.PeerID{"a"}, false); why != GoesOn || j.own.Wants != GoesOn {
		t.Errorf("NaN and −∞ reach the aim: %q", j.own.Wants)
	}
}

// FuzzSaid reads any bytes as what a member says. What is accepted is the one encoding of what it means.
func FuzzSaid(f *testing.F) {
	encode := func(s Said) []byte {
		c := wire.BodyWriter()
		s.Fields(&c)
		return c.Written()
	}
	f.Add(encode(Said{Accuracy: 0.5, Loss: 2, Trained: time.Hour, Wants: Plateau, Over: true}))
	f.Add(encode(Said{}))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Said
		c := wire.BodyReader(wire.TypeControl, text)
		s.Fields(&c)
		if err := c.Finish(); err != nil {
			if !errors.Is(err, wire.ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		if !(s.Accuracy >= 0 && s.Accuracy <= 1) || math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) || s.Trained < 0 {
			t.Fatalf("accepted: %+v", s)
		}
		if again := encode(s); !bytes.Equal(again, text) {
			t.Fatalf("% x is accepted as %+v, which is % x", text, s, again)
		}
	})
}

package arrival_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stateserver"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// The flock of these tests: what lies behind the model of each of its members, and what they have done together.
const (
	values = 40
	age    = 100
	total  = 300
)

// word is what a member says of itself and of the flock, and how.
type word struct {
	age, total uint64
	claims     uint64        // of what its record says of its age, what it has not done
	busy       time.Duration // until it answers a hello
	gives      bool          // its model
}

var honest = word{age: age, total: total, gives: true}

// trained adds a member that has trained, beside others, whose values are all 7.
func trained(t *testing.T, n *memnet.Network, name string, says word, beside ...*comer) (c *comer, server *stateserver.Server) {
	t.Helper()
	c = arrive(t, n, name, values)
	model := make(tensor.Vector, values)
	for i := range model {
		model[i] = 7
	}
	if err := c.Replica.RestoreShared(model); err != nil {
		t.Fatal(err)
	}
	c.claims, c.busy = says.claims, says.busy
	c.flock.SetAge(says.age)
	c.flock.AtLeast(says.total)
	c.Arrival.Begin()
	if err := c.Ask(t.Context(), ""); err != nil { // which announces it
		t.Fatal(err)
	}
	for _, other := range beside {
		if err := c.membership.Join(t.Context(), other.transport.Self()); err != nil {
			t.Fatal(err)
		}
	}
	c.serve(t)
	if says.gives {
		server = c.gives(t, nil)
	}
	return c, server
}

// gives has a member give its model, after something else if that is not nil.
func (c *comer) gives(t *testing.T, before func()) *stateserver.Server {
	t.Helper()
	server := stateserver.New(stateserver.Config{
		Requests: c.Requests, Layout: c.Layout, Replica: c.Replica, Flock: c.flock, Model: c.Joiner, Exchanges: c, Quarantine: c,
	})
	stop, err := c.transport.Handle(transport.ProtocolState, run, c.Answering(func(s *framed.Stream) error {
		if before != nil {
			before()
		}
		return server.Serve(t.Context(), s)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return server
}

func (c *comer) Busy() bool { return false }

// model is the value that all values of the model have, NaN if they differ.
func (c *comer) model() float64 {
	model := make(tensor.Vector, values)
	c.Replica.Snapshot(model)
	for _, v := range model {
		if v != model[0] {
			return math.NaN()
		}
	}
	return float64(model[0])
}

// TestALatecomerBeginsWithTheFlocksModel, and with what that knows of itself: from far away, where a host takes its time
// to answer, and where an address is silent or its own.
func TestALatecomerBeginsWithTheFlocksModel(t *testing.T) {
	for name, c := range map[string]struct {
		delay, busy, most time.Duration
		join              []string
	}{
		"at once":               {time.Millisecond, 0, time.Second, []string{"mem:host"}},
		"a long way":            {900 * time.Millisecond, 0, 40 * time.Second, []string{"mem:host"}},
		"a busy host":           {time.Millisecond, stall - 500*time.Millisecond, 3 * stall, []string{"mem:host"}},
		"a silent one as well":  {time.Millisecond, 0, time.Second, []string{"mem:hole", "mem:host"}},
		"its own address first": {time.Millisecond, 0, time.Second, []string{"mem:late", "mem:host"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{Link: memnet.Link{Delay: c.delay}})
				says := honest
				says.busy = c.busy
				trained(t, n, "host", says)
				hole := arrive(t, n, "hole", values)
				late := arrive(t, n, "late", values, c.join...)
				n.Cut(hole.transport.Self(), late.transport.Self())
				late.Arrival.Begin()
				began := time.Now()
				if late.Open() {
					t.Error("the trainer may train before the model is here")
				}
				if err := late.Wait(t.Context()); err != nil || time.Since(began) > c.most {
					t.Fatalf("%v after %s", err, time.Since(began))
				}
				if s := late.State(); late.model() != 7 || s.Servers != 1 || s.Alone || s.Kept {
					t.Errorf("it begins with %g: %+v", late.model(), s)
				}
				if late.flock.Age() != age || late.flock.Total() != total || late.visits.Load() != 1 || !late.Reached() || late.entered != arrival.Copying {
					t.Errorf("%d steps behind its model, %d of all, %d visits, entered in phase %d", late.flock.Age(), late.flock.Total(), late.visits.Load(), late.entered)
				}
			})
		})
	}
}

// TestWhoTrainedAloneIsBroughtUpOnceItIsFound: training from initial values is for as long as nobody answers. A model that
// is as old as the flock's by then stays.
func TestWhoTrainedAloneIsBroughtUpOnceItIsFound(t *testing.T) {
	for own, want := range map[int]float64{5: 7, age - 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
			host, _ := trained(t, n, "host", honest)
			late := arrive(t, n, "late", values, "mem:host")
			n.Cut(host.transport.Self(), late.transport.Self())
			late.Arrival.Begin()
			if err := late.Wait(t.Context()); err != nil || late.Reached() || late.logged.FilterMessageSnippet("training alone").Len() != 1 {
				t.Errorf("where nobody answers: %v; reached %t; logged %v", err, late.Reached(), late.logged.All())
			}
			for range own {
				late.flock.Stepped()
			}
			n.HealAll()
			time.Sleep(20 * time.Second)
			if late.model() != want || late.flock.Total() < total != (want == 0) || !late.Open() || !late.Reached() {
				t.Errorf("after %d steps alone it has %g of %d steps; reached %t", own, late.model(), late.flock.Total(), late.Reached())
			}
			if replaced := late.Replica.Replaced(); replaced != uint64(want/7) {
				t.Errorf("the model was replaced %d times", replaced)
			}
		})
	}
}

// TestACheckpointThatIsNearIsKept, with nothing copied; one that lies too far behind is not trained on from.
func TestACheckpointThatIsNearIsKept(t *testing.T) {
	for knew, near := range map[uint64]bool{total - total/10: true, total - total/10 - 1: false, total + 50: true} {
		for _, who := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{})
				host, server := trained(t, n, "host", honest)
				mute := arrive(t, n, "mute", values) // whose word is not waited for
				if err := errors.Join(mute.Ask(t.Context(), ""), mute.membership.Join(t.Context(), host.transport.Self())); err != nil {
					t.Fatal(err)
				}
				back := arrive(t, n, "back", values, "mem:host")
				back.Checkpoint = arrival.Checkpoint{Steps: age - 10, FlockSteps: knew, TellsWho: who}
				back.Arrival.Begin()
				if err := back.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				s := back.State()
				if s.Kept != near || (s.Servers == 0) != near || (server.Sent() == 0) != near || (back.model() == 0) != near {
					t.Errorf("at %d of %d steps: %+v, with %g", knew, total, s, back.model())
				}
				if want := map[bool]uint64{true: age - 10, false: age}[near]; back.flock.Age() != want || back.flock.Total() != total {
					t.Errorf("%d steps behind it, %d of all", back.flock.Age(), back.flock.Total())
				}
			})
		}
	}
}

// TestOneDonorsLieAboutTheFlockMovesNothing: of several words on what the flock has done, and on the age of its models,
// the median counts, be the liar the one that has let the newcomer in or not.
func TestOneDonorsLieAboutTheFlockMovesNothing(t *testing.T) {
	for name, lie := range map[string]word{
		"much": {age, 1 << 60, 0, 0, true}, "old": {1 << 60, total, 0, 0, true}, "nothing": {age, 0, 0, 0, true}, "all": {1 << 60, 1 << 60, 0, 0, true},
	} {
		for _, through := range []string{"mem:liar", "mem:b"} {
			t.Run(name+" "+through, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
					liar, _ := trained(t, n, "liar", lie)
					trained(t, n, "a", honest, liar)
					trained(t, n, "b", honest, liar)
					late := arrive(t, n, "late", values, through)
					late.Arrival.Begin()
					if err := late.Wait(t.Context()); err != nil || late.model() != 7 || late.State().Servers != 3 {
						t.Fatalf("%v, %+v", err, late.State())
					}
					if late.flock.Age() != age || late.flock.Total() != total {
						t.Errorf("%d steps behind its model, %d of all", late.flock.Age(), late.flock.Total())
					}
				})
			})
		}
	}
}

// TestADonorsWordOnItsAgeIsHeldToTheFlocks: newcomers that have copied the model of a member that says it is older than
// anything, since nobody else gives one, would tell that on in good faith, until the flock believes whatever it claims.
func TestADonorsWordOnItsAgeIsHeldToTheFlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		liar, _ := trained(t, n, "liar", word{age: 1 << 60, total: 1 << 60, gives: true})
		for _, name := range []string{"a", "b", "c"} {
			trained(t, n, name, word{age: age, total: 4 * total}, liar)
		}
		late := arrive(t, n, "late", values, "mem:liar")
		late.Arrival.Begin()
		if err := late.Wait(t.Context()); err != nil || late.State().Servers != 1 {
			t.Fatalf("%v, %+v", err, late.State())
		}
		if most := flock.Plausible([]uint64{age, age, age, 1 << 60}); late.flock.Age() > most || late.flock.Total() != 4*total {
			t.Errorf("%d steps behind its model, at most %d are plausible; %d of all", late.flock.Age(), most, late.flock.Total())
		}
	})
}

// TestWhereNobodyGivesAModel newcomers begin with the values that all begin with, and say so: those that could give one
// die, and those that came just now have none yet.
func TestWhereNobodyGivesAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
		host, _ := trained(t, n, "host", word{age: age, total: total})
		host.gives(t, func() { n.Crash(host.transport.Self()) })
		began := time.Now()
		var all []*comer
		for _, name := range []string{"a", "b", "c"} {
			late := arrive(t, n, name, values, "mem:host")
			late.serve(t)
			late.gives(t, nil)
			late.Arrival.Begin()
			all = append(all, late)
		}
		for _, late := range all {
			if err := late.Wait(t.Context()); err != nil || time.Since(began) > 20*time.Second {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			if s := late.State(); late.model() != 0 || !s.Alone || s.Servers != 0 || late.logged.FilterMessageSnippet("training alone").Len() != 1 {
				t.Errorf("it has %g: %+v; logged %v", late.model(), s, late.logged.All())
			}
		}
	})
}

// TestNoHonestDonorKeepsANewcomerOut: with members there that offer nothing usable, values of its own would set the
// flock back. What is wrong with the offer is said, and what to do.
func TestNoHonestDonorKeepsANewcomerOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trained(t, n, "host", word{age: age, total: total, claims: 1000, gives: true})
		late := arrive(t, n, "late", values, "mem:host")
		late.Arrival.Begin()
		err := late.Wait(t.Context())
		if fault, _ := errors.AsType[*copying.ServerError](err); fault == nil || fault.Fault != copying.Stale || !strings.Contains(err.Error(), "another address") {
			t.Errorf("%v", err)
		}
		if late.Open() || late.Fault() == nil || late.Arrival.Fault() != nil {
			t.Errorf("the model is let in: %t; the member is kept out: %v", late.Open(), late.Arrival.Fault())
		}
	})
}

// TestClosingEndsACopy, and a wait for it; so does the end of the wait's own time, which leaves the copy under way.
func TestClosingEndsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond, Bandwidth: 100}})
		trained(t, n, "host", honest)
		late := arrive(t, n, "late", values, "mem:host")
		late.Arrival.Begin()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := late.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || late.Phase() != arrival.Copying {
			t.Fatalf("%v in phase %v", err, late.Phase())
		}
		began := time.Now()
		time.AfterFunc(time.Second, late.Joiner.Close)
		if err := late.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if late.Joiner.Close(); time.Since(began) > 2*time.Second || late.model() != 0 {
			t.Errorf("closed after %s, with %g", time.Since(began), late.model())
		}
	})
}

package arrival_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestWhoIsGivenNobodyToJoinTrainsAtOnce, as who is given its own address only: all may be given the same.
func TestWhoIsGivenNobodyToJoinTrainsAtOnce(t *testing.T) {
	for _, join := range [][]string{nil, {"mem:first"}} {
		synctest.Test(t, func(t *testing.T) {
			first := arrive(t, memnet.New(memnet.Config{}), "first", 3, join...)
			began := time.Now()
			first.Arrival.Begin()
			if err := first.Wait(t.Context()); err != nil || !first.Reached() || !first.Placed() || time.Since(began) > time.Second {
				t.Errorf("%v; reached %v, placed %v, after %s", err, first.Reached(), first.Placed(), time.Since(began))
			}
		})
	}
}

// TestALateSeedChangesNothing: an address that answers long after another is joined too, which leaves a model that is
// trained as it is.
func TestALateSeedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		trained(t, network, "one", word{})
		two := arrive(t, network, "two", values, "mem:one", "mem:late")
		two.Arrival.Begin()
		if err := two.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		trained(t, network, "late", honest)
		time.Sleep(10 * time.Second)
		if s := two.State(); two.visits.Load() != 2 || !two.Open() || two.model() != 0 || s.Servers != 0 {
			t.Errorf("%d visits, open %t, with %g: %+v", two.visits.Load(), two.Open(), two.model(), s)
		}
	})
}

// TestWhomNobodyAnswers trains alone in the end, and joins whoever comes later.
func TestWhomNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		early := arrive(t, network, "early", 3, "mem:late")
		early.Arrival.Begin()
		began := time.Now()
		if early.Placed() {
			t.Error("it takes a role before it has seen a flock")
		}
		if err := early.Wait(t.Context()); err != nil || time.Since(began) != arrival.Timeout || early.Reached() || !early.Placed() {
			t.Fatalf("%v after %s, reached %v, placed %v", err, time.Since(began), early.Reached(), early.Placed())
		}
		late := arrive(t, network, "late", 3)
		late.serve(t)
		time.Sleep(10 * time.Second)
		if !early.Reached() || early.Phase() != arrival.Here {
			t.Errorf("reached %v, phase %v", early.Reached(), early.Phase())
		}
	})
}

// TestWhoIsDoneReturnsToNobody: one that sees nobody goes back to the addresses that it was
// given, but not once the run is over for it: a copy would be put in the place of its model.
func TestWhoIsDoneReturnsToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host := arrive(t, network, "host", 3)
		host.serve(t)
		c := arrive(t, network, "comer", 3, "mem:host")
		c.Arrival.Begin()
		time.Sleep(time.Minute + time.Second) // between two visits
		visits := c.visits.Load()
		if visits < 2 {
			t.Fatalf("%d visits in a minute alone", visits)
		}
		c.flock.Finish()
		time.Sleep(time.Minute)
		if more := c.visits.Load() - visits; more > 0 {
			t.Errorf("%d visits after the end of the run", more)
		}
	})
}

// TestUpBeforeItsFounder: for how long a peer has been there says nothing of another that is
// only starting, and answers for no run yet; a refusal that stands for two seconds is believed.
func TestUpBeforeItsFounder(t *testing.T) {
	for name, starting := range map[string]time.Duration{"starts in a second": time.Second, "takes no part": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				early := arrive(t, network, "early", 3, "mem:founder")
				early.Arrival.Begin()
				time.Sleep(3*time.Second + 7*time.Millisecond)
				founder := arrive(t, network, "founder", 3)
				time.Sleep(starting)
				founder.serve(t)
				time.Sleep(5 * time.Second)
				joins := starting < 2*time.Second
				if err := early.Fault(); early.Reached() != joins || (err == nil) != joins || !joins && !errors.Is(err, transport.ErrUnknownRun) {
					t.Errorf("reached %v, fault %v", early.Reached(), early.Fault())
				}
			})
		})
	}
}

// TestARunBegunAnewBarsWhoIsAlone: who goes back to an address, alone, and finds a run there that
// is set up otherwise has no business to train on.
func TestARunBegunAnewBarsWhoIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host := arrive(t, network, "host", 3)
		host.serve(t)
		c := described(t, network, "comer", "0.1", "mem:host")
		c.Arrival.Begin()
		time.Sleep(time.Second)
		if !c.Reached() {
			t.Fatal("has not joined one that says nothing of the run")
		}
		host.transport.Close()
		anew := described(t, network, "host", "0.5")
		anew.serve(t)
		time.Sleep(15 * time.Second) // it goes back every ten
		mismatch, ok := errors.AsType[*description.MismatchError](c.Fault())
		if !ok || len(mismatch.Differences) != 1 || mismatch.Differences[0].There != "0.5" {
			t.Errorf("%v", c.Fault())
		}
	})
}

func TestCloseEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := arrive(t, memnet.New(memnet.Config{}), "alone", 3, "mem:nobody")
		c.Arrival.Begin()
		time.AfterFunc(time.Second, c.Close)
		if err := c.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestOneThatRefusesBarsNobody: a model that comes to a run in which its member is already is refused if
// those that answer have another, not if one says so.
func TestOneThatRefusesBarsNobody(t *testing.T) {
	for _, refusing := range []string{"b", "c", "bc"} { // the first tells nobody of itself
		synctest.Test(t, func(t *testing.T) {
			network := memnet.New(memnet.Config{})
			var refuses atomic.Bool
			for _, name := range []string{"a", "b", "c"} {
				host := arrive(t, network, name, 3, "mem:a") // which is itself for the first
				stop, err := host.transport.Handle(transport.ProtocolHello, run, func(stream transport.Stream) {
					var s framed.Stream
					var hello wire.Hello
					if s.Begin(stream, stall); !refuses.Load() || !strings.Contains(refusing, name) {
						_ = host.Serve(&s)
					} else if _, err := s.Receive(&hello); err == nil {
						s.Refuse(0, wire.ReasonLayout, "")
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stop)
				host.Arrival.Begin()
				time.Sleep(time.Second)
			}
			late := arrive(t, network, "late", 3, "mem:a")
			late.Arrival.Brings(nil)
			late.Arrival.Begin()
			time.Sleep(time.Second)
			refuses.Store(true)
			late.Arrival.Brings(late.Joiner)
			late.Joiner.Begin()
			if err := late.Wait(t.Context()); errors.Is(err, transport.ErrLayout) != (refusing == "bc") {
				t.Errorf("%s refuse: %v", refusing, err)
			}
		})
	}
}

// slowMembers are told after a while.
type slowMembers struct {
	transport.Membership
	asked, told atomic.Bool
}

func (s *slowMembers) Members() []transport.Record {
	s.asked.Store(true)
	time.Sleep(time.Second)
	defer s.told.Store(true)
	return s.Membership.Members()
}

// TestTheModelIsLeftAloneOnceItIsClosed: what the arrival does for a model is waited for, though the member stays.
func TestTheModelIsLeftAloneOnceItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		first := arrive(t, network, "a", 3)
		first.serve(t)
		first.Arrival.Begin()
		late := arrive(t, network, "late", 3, "mem:a")
		members := &slowMembers{Membership: late.Membership}
		late.Membership = members
		late.Arrival.Begin()
		time.Sleep(time.Second / 2)
		late.Joiner.Close()
		if !members.asked.Load() || !members.told.Load() {
			t.Errorf("asked: %t, told: %t", members.asked.Load(), members.told.Load())
		}
	})
}

// TestPartnersOfEarlierLivesAreLookedFor: those that one is told to join may show it another flock. Of those that it sees
// already, and of itself, nobody is asked.
func TestPartnersOfEarlierLivesAreLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host, _ := trained(t, network, "host", word{})
		impostor, _ := trained(t, network, "impostor", word{})
		again := arrive(t, network, "again", values, "mem:impostor")
		again.flock.Observe([]transport.Record{{Peer: impostor.transport.Self(), Incarnation: 1}, {Peer: again.transport.Self(), Incarnation: 1}}, time.Now())
		for _, id := range []transport.PeerID{again.transport.Self(), impostor.transport.Self(), "nobody", host.transport.Self()} {
			again.Partners = append(again.Partners, arrival.Partner{ID: id, Addresses: []string{"mem:host"}})
		}
		again.Arrival.Begin()
		time.Sleep(time.Minute)
		if members := again.membership.Members(); len(members) != 3 || again.visits.Load() != 2 {
			t.Errorf("it sees %v after %d visits", members, again.visits.Load())
		}
	})
}

package arrival_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	run   = "digits"
	stall = 5 * time.Second
)

// comer is an arrival with no peer around it.
type comer struct {
	*arrival.Joiner
	transport  *memnet.Transport
	flock      *flock.Flock
	membership transport.Membership
	tally      *counters.Counters
	visits     atomic.Int64 // to members that have let it in
}

// arrive prepares an arrival at a network.
func arrive(t *testing.T, network *memnet.Network, name string, values int, join ...string) *comer {
	t.Helper()
	return arriveAs(t, network, name, values, nil, join...)
}

// described arrives at a run that it knows to have this rate.
func described(t *testing.T, network *memnet.Network, name, rate string, join ...string) *comer {
	t.Helper()
	return arriveAs(t, network, name, 3, []description.Field{{Name: "rate", Value: rate}}, join...)
}

func arriveAs(t *testing.T, network *memnet.Network, name string, values int, says []description.Field, join ...string) *comer {
	t.Helper()
	tr, err := network.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	membership, err := network.Membership(tr, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { membership.Close() })
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	held, err := replica.New(tensor.NewParams(layout), replica.Options{Clock: func() time.Duration { return time.Since(began) }})
	if err != nil {
		t.Fatal(err)
	}
	c := &comer{transport: tr, flock: flock.New(tr.Self())}
	described, err := arrival.NewDescribed(tr, description.Of(run, says...))
	if err != nil {
		t.Fatal(err)
	}
	c.flock.SetIncarnation(1)
	c.flock.SetLayout(layout.Hash())
	c.membership, c.tally = membership, counters.New()
	arrives := arrival.New(arrival.Config{
		Greeter: arrival.Greeter{
			Requests: requests.New(run, tr, stall, c.tally, zap.NewNop()), Flock: c.flock, Described: described,
		},
		Join: join, Membership: membership, Operator: c, Loop: c,
	})
	t.Cleanup(arrives.Close)
	c.Joiner = arrival.NewJoiner(arrival.JoinerConfig{
		Layout: layout.Hash(), Replica: held, Quarantine: c,
	}, arrives)
	t.Cleanup(c.Joiner.Close)
	arrives.Brings(c.Joiner)
	return c
}

// Ask counts the visit, and enters the membership with what this one says of itself.
func (c *comer) Ask(context.Context, transport.PeerID) error {
	c.visits.Add(1)
	return c.membership.Announce(transport.Record{Peer: c.transport.Self(), Run: run, Incarnation: 1})
}

func (c *comer) Joined()                                    {}
func (c *comer) Quarantined(transport.PeerID) time.Duration { return 0 }
func (c *comer) Add(transport.PeerID, error)                {}

// serve has an arrival answer those that say hello.
func (c *comer) serve(t *testing.T) {
	t.Helper()
	stop, err := c.transport.Handle(transport.ProtocolHello, run, func(stream transport.Stream) {
		var s framed.Stream
		s.Begin(stream, stall)
		if c.Serve(&s) != nil {
			stream.Reset()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

func TestWhoIsGivenNobodyToJoinTrainsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := arrive(t, memnet.New(memnet.Config{}), "first", 3)
		first.Arrival.Begin()
		if err := first.Wait(t.Context()); err != nil || !first.Reached() || !first.Placed() {
			t.Errorf("%v; reached %v, placed %v", err, first.Reached(), first.Placed())
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
		if err := early.Wait(t.Context()); err != nil || time.Since(began) != arrival.Timeout || early.Reached() {
			t.Fatalf("%v after %s, reached %v", err, time.Since(began), early.Reached())
		}
		late := arrive(t, network, "late", 3)
		late.serve(t)
		time.Sleep(10 * time.Second)
		if !early.Reached() || early.Phase() != arrival.Here {
			t.Errorf("reached %v, phase %v", early.Reached(), early.Phase())
		}
	})
}

// TestARefusalThatStays: another model bars one at once; who is only starting, and answers
// for no run yet, is asked again.
func TestARefusalThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host := arrive(t, network, "host", 3)
		other := arrive(t, network, "other", 4, "mem:host")
		other.Arrival.Begin()
		time.Sleep(time.Second)
		select {
		case <-other.Barred():
			t.Fatalf("barred by a peer that is only starting: %v", other.Fault())
		default:
		}
		host.serve(t)
		err := other.Wait(t.Context())
		refused, _ := errors.AsType[*transport.RefusedError](err)
		if !errors.Is(err, transport.ErrLayout) || refused == nil || refused.Peer != host.transport.Self() || refused.Remedy == "" {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if declined := host.tally.Counts().Declined; len(declined) != 1 || declined[wire.ReasonLayout.String()] != 1 {
			t.Errorf("the host has declined %v", declined)
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
				if early.Reached() != joins || (early.Fault() == nil) != joins {
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

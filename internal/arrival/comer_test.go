package arrival_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
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
	logged     *observer.ObservedLogs
	visits     atomic.Int64  // to members that have let it in
	entered    arrival.Phase // when the last of them let it in
	claims     uint64        // of what its record says of its age, what it has not done
	busy       time.Duration // until it answers a hello
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
	held, err := replica.New(tensor.NewParams(layout), replica.Options{SliceLen: 2, Clock: func() time.Duration { return time.Since(began) }})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.InfoLevel)
	c := &comer{transport: tr, flock: flock.New(tr.Self()), logged: logged}
	described, err := arrival.NewDescribed(tr, description.Of(run, says...))
	if err != nil {
		t.Fatal(err)
	}
	c.flock.SetIncarnation(1)
	c.flock.SetLayout(layout.Hash())
	c.membership, c.tally = membership, counters.New()
	arrives := arrival.New(arrival.Config{
		Greeter: arrival.Greeter{
			Requests: requests.New(run, tr, stall, c.tally, zap.New(core)), Flock: c.flock, Described: described, Build: "the build of " + name,
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
	c.entered = c.Phase()
	return c.membership.Announce(transport.Record{Peer: c.transport.Self(), Run: run, Incarnation: 1, Steps: c.flock.Age() + c.claims})
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
		if time.Sleep(c.busy); c.Serve(&s) != nil {
			stream.Reset()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

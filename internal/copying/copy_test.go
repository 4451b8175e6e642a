package copying_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/stateserver"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	run      = "digits"
	stall    = 5 * time.Second
	sliceLen = 16
	values   = 300
)

// room is a joiner beside state servers, with no peer around either.
type room struct {
	transport.Membership
	t       *testing.T
	network *memnet.Network
	layout  *tensor.Layout
	members []transport.Record
	lied    []transport.PeerID
	why     error            // the last of these is believed to have lied
	busy    bool             // state servers have an exchange under way
	cut     bool             // nobody can be dialled
	late    transport.PeerID // a state server that is found to have lied when all else is over
	spoil   spoil
	leaving chan struct{}
	to      transport.PeerID // the joiner, once it copies
	logged  *observer.ObservedLogs
	log     *zap.Logger
}

func newRoom(t *testing.T) *room {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	return &room{t: t, busy: true, leaving: make(chan struct{}), logged: logged, log: zap.New(core), network: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}}), layout: layout}
}

func (r *room) transport(name string) *memnet.Transport {
	tr, err := r.network.Transport(name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { tr.Close() })
	return tr
}

// donate adds a state server whose values are all the same. Refusing tells joiners to go
// elsewhere; claimed is what its record says of its age, beyond what its manifest does.
func (r *room) donate(name string, value float32, refusing wire.Reason, claimed uint64) transport.PeerID {
	params := tensor.NewParams(r.layout)
	for i := range params.Vector() {
		params.Vector()[i] = value
	}
	began := time.Now()
	held, err := replica.New(params, replica.Options{SliceLen: sliceLen, Clock: func() time.Duration { return time.Since(began) }})
	if err != nil {
		r.t.Fatal(err)
	}
	tr := r.transport(name)
	done := flock.New(tr.Self())
	done.SetIncarnation(1)
	done.SetAge(100)
	done.AtLeast(300)
	d := stateserver.New(stateserver.Config{
		Requests: requests.New(run, tr, stall, counters.New(), zap.NewNop()), Layout: r.layout.Hash(), Replica: held,
		Flock: done, Model: giver{r, refusing}, Exchanges: r, Quarantine: giver{r, refusing}, Closing: map[bool]chan struct{}{true: r.leaving}[strings.HasPrefix(name, odd)],
	})
	stop, err := tr.Handle(transport.ProtocolState, run, func(stream transport.Stream) {
		var s framed.Stream
		if s.Begin(stream, stall); strings.HasPrefix(name, odd) && r.spoil != nil {
			s.Begin(&spoiled{stream, tr, r.spoil}, stall)
		}
		if d.Serve(context.Background(), &s) != nil {
			stream.Reset()
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(stop)
	r.members = append(r.members, transport.Record{Peer: tr.Self(), Incarnation: 1, Steps: 100 + claimed})
	return tr.Self()
}

func (r *room) copy(ctx context.Context) (*copying.Copied, error) {
	tr := r.transport("newcomer")
	r.to = tr.Self()
	return copying.Copy(ctx, copying.Config{
		Run: run, Layout: r.layout.Hash(), Values: values, SliceLen: sliceLen, Stall: stall,
		Identity: tr, Membership: r, Gives: flock.Trains, News: make(chan struct{}), Requests: asking{r, tr}, Quarantine: r, Log: r.log,
	}, r.members[0].Peer)
}

// giver is a state server that refuses what it is asked for.
type giver struct {
	*room
	refusing wire.Reason
}

func (g giver) Open() bool { return g.refusing != wire.ReasonJoining }

func (g giver) Quarantined(transport.PeerID) time.Duration {
	if g.refusing == wire.ReasonQuarantine {
		return time.Hour
	}
	return 0
}

func (r *room) Busy() bool                                 { return r.busy }
func (r *room) Members() []transport.Record                { return slices.Clone(r.members) }
func (r *room) Quarantined(transport.PeerID) time.Duration { return 0 }
func (r *room) Add(server transport.PeerID, why error)     { r.lied, r.why = append(r.lied, server), why }

// asking asks the members of a room over a transport.
type asking struct {
	*room
	transport transport.Transport
}

func (a asking) Converse(ctx context.Context, to transport.PeerID, protocol transport.Protocol, talk func(*framed.Stream) error) error {
	if a.cut {
		<-ctx.Done()
		return ctx.Err()
	}
	stream, err := a.transport.Open(ctx, to, protocol, run)
	if err != nil {
		return err
	}
	err = new(framed.Stream).Converse(ctx, stream, stall, talk)
	if to == a.late {
		<-ctx.Done()
		return &copying.ServerError{Fault: copying.WrongSlice}
	}
	return err
}

func TestACopyIsOfSeveralDonors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		for i := range 3 {
			r.donate(fmt.Sprint("donor-", i), float32(i+1), 0, 0)
		}
		copied, err := r.copy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if copied.Stats.Servers != 3 || copied.Stats.Slices != (values+sliceLen-1)/sliceLen || copied.Stats.Faulty != 0 || len(r.lied) > 0 {
			t.Errorf("%+v, %v lied", copied, r.lied)
		}
		for i, v := range copied.Values {
			if first := copied.Values[i/sliceLen*sliceLen]; v != first || v < 1 || v > 3 {
				t.Fatalf("value %d is %g, the first of its slice %g", i, v, first)
			}
		}
		if !slices.Equal(copied.Ages, []uint64{100, 100, 100}) || !slices.Equal(copied.FlockSteps, []uint64{300, 300, 300}) {
			t.Errorf("ages %v, steps of the flock %v", copied.Ages, copied.FlockSteps)
		}
	})
}

// TestWhoIsOfNoUse: a state server that is busy is asked again, one that is older than its record
// says or of another model is not, and where nobody else is there, the copy fails in time.
func TestWhoIsOfNoUse(t *testing.T) {
	for _, c := range []struct {
		name     string
		refusing wire.Reason
		claimed  uint64
		others   int
		want     error
		fault    copying.Fault
	}{
		{"a newcomer itself, alone", wire.ReasonJoining, 0, 0, copying.ErrNobody, ""},
		{"a newcomer itself, with others", wire.ReasonJoining, 0, 2, nil, ""},
		{"older than it says, alone", 0, 1000, 0, nil, copying.Stale},
		{"older than it says, with others", 0, 1000, 2, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t)
				r.donate(odd, 1, c.refusing, c.claimed)
				for i := range c.others {
					r.donate(fmt.Sprint("donor-", i), 2, 0, 0)
				}
				began := time.Now()
				copied, err := r.copy(t.Context())
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %s", took)
				}
				fault, _ := errors.AsType[*copying.ServerError](err)
				switch {
				case c.others > 0 && (err != nil || copied.Stats.Servers != c.others || copied.Values[0] != 2):
					t.Errorf("%+v, %v", copied, err)
				case c.want != nil && !errors.Is(err, c.want), c.fault != "" && (fault == nil || fault.Fault != c.fault):
					t.Errorf("%v, want %v %v", err, c.want, c.fault)
				}
			})
		})
	}
}

// TestALiarFoundOutLate: what a state server gave that turns out to have lied when every slice is here
// is asked of the others.
func TestALiarFoundOutLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		r.late = r.donate("liar", 1, 0, 0)
		r.donate("honest", 2, 0, 0)
		copied, err := r.copy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.lied, []transport.PeerID{r.late}) || copied.Stats.Faulty != 1 || copied.Stats.Servers != 1 || copied.Stats.Retransmitted == 0 {
			t.Errorf("%+v, %v lied", copied.Stats, r.lied)
		}
		if i := slices.IndexFunc(copied.Values, func(v float32) bool { return v != 2 }); i >= 0 {
			t.Errorf("value %d is %g, the liar's", i, copied.Values[i])
		}
		if !slices.Equal(copied.Ages, []uint64{100}) {
			t.Errorf("ages %v", copied.Ages)
		}
	})
}

func TestACopyEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		r.donate("busy", 1, wire.ReasonQuarantine, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := r.copy(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("%v, after %s", err, time.Since(began))
		}
	})
}

// TestALongCopySaysWhy: who waits for state servers that are busy is told so now and then, with
// what the last of them said.
func TestALongCopySaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		r.donate("busy", 1, wire.ReasonQuarantine, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
		defer cancel()
		if _, err := r.copy(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		warned := r.logged.FilterMessage("still copying the flock's model").All()
		if len(warned) != 2 {
			t.Fatalf("warned %d times", len(warned))
		}
		if why, _ := warned[0].ContextMap()["last"].(string); !strings.Contains(why, wire.ReasonQuarantine.String()) {
			t.Errorf("it waits because of %q", why)
		}
	})
}

// TestExchangesComeFirst: a state server that has an exchange under way pauses after each slice for
// as long as it took. Of a slice here half is still on its way by then.
func TestExchangesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took [2]time.Duration
		for i, busy := range []bool{false, true} {
			r := newRoom(t)
			r.busy, r.network = busy, memnet.New(memnet.Config{Link: memnet.Link{Bandwidth: 4000}, Window: 64})
			r.donate("donor", 1, 0, 0)
			copied, err := r.copy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			took[i] = copied.Stats.Took
		}
		if ratio := float64(took[1]) / float64(took[0]); ratio < 1.15 || ratio > 2.2 {
			t.Errorf("%s beside exchanges, %s without: %.2f times as long", took[1], took[0], ratio)
		}
	})
}

// TestDonorsThatCannotBeReached: that is what is said of them, not that the copy was broken off.
func TestDonorsThatCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		r.donate("far", 1, 0, 0)
		r.cut = true
		_, err := r.copy(t.Context())
		if !errors.Is(err, copying.ErrNobody) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

package sumnet

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// crowd are the members of a network, and look is called before they are looked at.
type crowd struct {
	members *[]transport.PeerID
	look    func()
}

func (c *crowd) Here(id transport.PeerID) bool { return slices.Contains(*c.members, id) }
func (c *crowd) Unreachable() bool             { return false }

func (c *crowd) Records() (all []transport.Record) {
	if c.look != nil {
		c.look()
	}
	for _, id := range *c.members {
		all = append(all, transport.Record{Peer: id})
	}
	return all
}

// place is a transport of the network, and the sums on it if it knows them.
func place(t *testing.T, n *memnet.Network, name string, members *[]transport.PeerID, knowsSums bool) *Net {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	*members = append(*members, tr.Self())
	slices.Sort(*members)
	talks := New(requests.New("digits", tr, time.Second, counters.New(), zap.NewNop()), &crowd{members: members})
	protocol := transport.ProtocolSum
	if !knowsSums {
		protocol = transport.ProtocolHello // a release of before
	}
	stop, err := tr.Handle(protocol, "digits", talks.Serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Cleanup(talks.Close)
	return talks
}

// TestOlderReleasesArePassedOver shows that members that know no sums neither coordinate nor
// are waited for, whatever their place in the order.
func TestOlderReleasesArePassedOver(t *testing.T) {
	for old := range 3 {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New(memnet.Config{})
			var members []transport.PeerID
			var talks []*Net
			for i, name := range []string{"a", "b", "c"} {
				if one := place(t, n, name, &members, i != old); i != old {
					talks = append(talks, one)
				}
			}
			var group sync.WaitGroup
			began := time.Now()
			for _, one := range talks {
				one.Begin()
				group.Go(func() {
					r, err := one.Do(t.Context(), sums.Call{Name: "x", Vector: []float64{1, 2}, Timeout: time.Hour})
					if err != nil || r.Peers != 2 || r.Vector[1] != 4 {
						t.Errorf("%+v, error %v", r, err)
					}
				})
			}
			group.Wait()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestASumIsOfThoseWhoAreHere shows that the first sum is of all who are here when it is called, also
// of one of whom the machine has not been told.
func TestASumIsOfThoseWhoAreHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		var members []transport.PeerID
		a := place(t, n, "a", &members, true)
		a.Begin()
		synctest.Wait()
		b := place(t, n, "b", &members, true)
		b.Begin()
		synctest.Wait()
		var group sync.WaitGroup
		for i, one := range []*Net{a, b} {
			group.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				r, err := one.Do(t.Context(), sums.Call{Name: "x", Vector: []float64{1}, Timeout: time.Hour})
				if err != nil || r.Peers != 2 {
					t.Errorf("%+v, error %v", r, err)
				}
			})
		}
		group.Wait()
	})
}

// TestAttemptsDoNotPileUp shows that what waits for a partner that takes nothing is of one attempt,
// whatever their number.
func TestAttemptsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		var members []transport.PeerID
		talks := place(t, n, "b", &members, true)
		slow, err := n.Transport("a")
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		takes, words, shares := make(chan struct{}), 0, map[uint64]int{}
		stop, err := slow.Handle(transport.ProtocolSum, "digits", func(stream transport.Stream) {
			defer stream.Close()
			<-takes
			for frames := wire.NewReader(stream, 0); ; {
				header, payload, err := frames.Next()
				if err != nil {
					return
				}
				var share wire.Share
				if header.Type != wire.TypeShare {
					words++
				} else if err := share.Decode(payload); err != nil {
					t.Error(err)
				} else {
					shares[share.Attempt]++
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		talks.machine.View(0, []transport.PeerID{slow.Self(), members[0]})
		talks.machine.Call(0, sums.Call{Name: "x", Vector: make([]float64, 1<<20)})
		const attempts = 20
		for attempt := range uint64(attempts) {
			talks.machine.Receive(0, slow.Self(), wire.Sum{Kind: wire.SumPlace, Name: "x", Attempt: attempt + 1, Size: 2, Partners: []string{string(slow.Self())}})
			talks.mu.Lock()
			talks.carryOut()
			talks.mu.Unlock()
			synctest.Wait()
		}
		close(takes)
		talks.mail.Close(t.Context())
		synctest.Wait()
		all := 0
		for _, of := range shares {
			all += of
		}
		const inFlight = 2 * together / wire.MaxShare // written at once, and what the network holds
		if want := 4 << 20 / wire.MaxShare; shares[attempts] != want || all > want+inFlight || words == 0 {
			t.Errorf("%d words and %v shares by attempt came, want %d of the last and few of others", words, shares, want)
		}
	})
}

// TestWhoIsWaitedForIsLogged shows that a log names the member that a sum waits for.
func TestWhoIsWaitedForIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		var members []transport.PeerID
		a, b := place(t, n, "a", &members, true), place(t, n, "b", &members, true)
		core, logged := observer.New(zap.WarnLevel)
		a.Log = zap.New(core)
		a.Begin()
		b.Begin()
		ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
		defer end()
		a.Do(ctx, sums.Call{Name: "x", Vector: []float64{1}, Timeout: time.Hour})
		lines := logged.FilterMessage(sums.Waits).All()
		if len(lines) < 2 || lines[0].ContextMap()["peer"] != string(b.Transport.Self()) {
			t.Errorf("logged: %v", lines)
		}
	})
}

// TestAnOldViewDoesNotStay shows that members are looked at under the lock under which the machine is told
// of them, by a call as by the loop: what one has seen before does not replace what the other has told since.
func TestAnOldViewDoesNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := memnet.New(memnet.Config{}).Transport("a")
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var talks *Net
		looks := 0
		talks = New(requests.New("digits", tr, time.Second, counters.New(), zap.NewNop()), &crowd{&[]transport.PeerID{tr.Self()}, func() {
			if looks++; looks > 1 && talks.mu.TryLock() { // nobody calls before the first
				talks.mu.Unlock()
				t.Errorf("look %d is without the lock", looks)
			}
		}})
		talks.Begin()
		if r, err := talks.Do(t.Context(), sums.Call{Name: "x", Vector: []float64{1}}); err != nil || r.Peers != 1 {
			t.Fatalf("%+v, error %v", r, err)
		}
		talks.MembersChanged()
		synctest.Wait()
		talks.Close()
		if looks != 3 {
			t.Errorf("%d looks at the members, want 3", looks)
		}
	})
}

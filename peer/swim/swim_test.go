package swim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestLifeOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 8)
		within(t, gossipMissed, members, "8 members see each other", count(8))

		var spreads []time.Duration
		for i := range uint64(5) {
			members[3].announce(t, 1, 77+i)
			spreads = append(spreads, within(t, gossipMissed, members, "a new record reaches all", func(records []transport.Record) bool {
				return slices.ContainsFunc(records, func(r transport.Record) bool {
					return r.Peer == members[3].wire.Self() && r.Steps == 77+i && r.Sequence == 2+i
				})
			}))
		}
		slices.Sort(spreads)
		if median := spreads[len(spreads)/2]; median > 600*time.Millisecond {
			t.Errorf("a new record takes %v to reach all", median)
		}

		began := time.Now()
		members[5].Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
		members = slices.Delete(members, 5, 6)
		within(t, gossipMissed, members, "a departure is seen by all", count(7))

		gone := members[6]
		n.Crash(gone.wire.Self())
		members = members[:6]
		within(t, 15*time.Second, members, "a crash is seen by all", count(6))
		if highest, ok := members[0].book.highest(gone.wire.Self()); highest != 1 || !ok {
			t.Errorf("highest incarnation of the departed: %d, %v", highest, ok)
		}
		if m := gone.Members(); len(m) > 8 {
			t.Errorf("the crashed member sees %d", len(m))
		}
	})
}

// TestPartitionHeals, within 30 s, be it shorter than gossip needs to see it, about as long as it remembers the dead, or longer.
func TestPartitionHeals(t *testing.T) {
	const seenAfter = 30 * time.Second
	for _, lasts := range []time.Duration{2 * time.Second, 7 * time.Second, 20 * time.Second, 46500 * time.Millisecond, 210 * time.Second, 10*time.Minute + 6500*time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			members := cluster(t, n, 8)
			within(t, gossipMissed, members, "joined", count(8))
			var left, right []transport.PeerID
			for i, m := range members {
				if i < 4 {
					left = append(left, m.wire.Self())
				} else {
					right = append(right, m.wire.Self())
				}
			}
			n.Partition(left, right)
			parted := time.Now()
			if lasts > seenAfter {
				within(t, seenAfter, members, "the partition is seen", count(4))
			}
			time.Sleep(lasts - time.Since(parted))
			members[0].announce(t, 1, 5)
			n.HealAll()
			time.Sleep(time.Second) // what was under way arrives, be it old news
			within(t, 29*time.Second, members, "healed", func(records []transport.Record) bool {
				return len(records) == 8 && slices.ContainsFunc(records, func(r transport.Record) bool { return r.Steps == 5 })
			})
		})
	}
}

// TestPartitionHealsBesideTheDead: both halves have lost many others for good at the
// same time, and the first members, whom all have joined through, too.
func TestPartitionHealsBesideTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 24)
		within(t, gossipMissed, members, "joined", count(24))
		var halves [2][]transport.PeerID
		for i, m := range members[16:] {
			halves[i/4] = append(halves[i/4], m.wire.Self())
		}
		n.Partition(halves[0], halves[1])
		for _, m := range members[:16] {
			n.Crash(m.wire.Self())
		}
		within(t, time.Minute, members[16:], "the partition is seen", count(4))
		time.Sleep(3 * time.Minute)
		n.HealAll()
		within(t, 30*time.Second, members[16:], "healed", count(8))
	})
}

func TestASeedThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		early := start(t, n, "early")
		early.announce(t, 1, 0)
		other := memnet.New(memnet.Config{}) // the same key, before it is on our network
		ghost, err := other.Transport("late")
		if err != nil {
			t.Fatal(err)
		}
		ghost.Close()
		if err := early.Join(t.Context(), ghost.Self()); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("join of nobody: %v", err)
		}
		if err := early.Join(t.Context(), early.wire.Self()); err != nil {
			t.Errorf("join of oneself: %v", err)
		}
		time.Sleep(time.Minute)
		late := start(t, n, "late")
		late.announce(t, 1, 0)
		within(t, DefaultRejoinEvery+time.Second, []*member{early, late}, "found", count(2))
	})
}

func TestJoinOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		m := start(t, n, "a")
		wire, err := n.Transport("b")
		if err != nil {
			t.Fatal(err)
		}
		defer wire.Close()
		other, err := New(Config{Transport: wire, Run: "letters"})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if err := m.Join(t.Context(), wire.Self()); !errors.Is(err, transport.ErrUnknownRun) {
			t.Errorf("got %v, want an unknown run", err)
		}
		third := start(t, n, "c")
		if err := m.Join(t.Context(), wire.Self(), third.wire.Self()); err != nil {
			t.Errorf("one of two answered: %v", err)
		}
		if _, err := New(Config{Transport: wire, Run: "letters"}); err == nil {
			t.Error("one peer took part in a run twice")
		}
	})
}

func TestJoinIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b, c := start(t, n, "a"), start(t, n, "b"), start(t, n, "c")
		n.Cut(a.wire.Self(), b.wire.Self())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := a.Join(ctx, b.wire.Self()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("across a cut link: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("gave up after %v, want 1s", took)
		}
		began = time.Now()
		if err := a.Join(t.Context(), b.wire.Self(), c.wire.Self()); err != nil {
			t.Errorf("one of two answers: %v", err)
		}
		if took := time.Since(began); took > 2*joinGrace {
			t.Errorf("one of two answers: took %v", took)
		}
		if err := a.Join(t.Context(), "no/id"); err == nil {
			t.Error("a malformed id was joined")
		}
	})
}

func TestOnlookersAreNotMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		onlooker := start(t, n, "onlooker")
		onlooker.join(t, members[0])
		within(t, gossipMissed, append(members, onlooker), "three members", count(3))
		time.Sleep(20 * time.Second)
		within(t, 0, append(members, onlooker), "still three members", count(3))
		onlooker.announce(t, 1, 0)
		within(t, gossipMissed, append(members, onlooker), "four members", count(4))
	})
}

func TestRestart(t *testing.T) {
	for name, pause := range map[string]time.Duration{
		"before anybody noticed":        100 * time.Millisecond,
		"after it was declared dead":    15 * time.Second,
		"after memberlist forgot of it": 5 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				members := cluster(t, n, 4)
				within(t, gossipMissed, members, "joined", count(4))
				members[3].announce(t, 7, 1000)
				time.Sleep(time.Second)
				n.Crash(members[3].wire.Self())
				time.Sleep(pause)

				next := start(t, n, "peer3")
				next.join(t, members[1])
				former, ok := next.book.highest(next.wire.Self())
				if former != 7 || !ok {
					t.Fatalf("the former life's incarnation: %d, %v, want 7", former, ok)
				}
				var old *transport.OldIncarnationError
				if err := next.Announce(next.record(7, 0)); !errors.As(err, &old) || old.Highest != 7 {
					t.Errorf("announce of the old incarnation: %v", err)
				}
				members[3] = next
				next.announce(t, former+1, 3)
				within(t, gossipMissed, members, "the new life is seen", func(records []transport.Record) bool {
					return len(records) == 4 && slices.ContainsFunc(records, func(r transport.Record) bool { return r.Incarnation == 8 && r.Steps == 3 })
				})
				time.Sleep(30 * time.Second)
				within(t, 0, members, "it stays", count(4))
			})
		})
	}
}

// TestAnnounceBeforeJoin is the restart of a peer that announces first and learns
// too late that the network knows a later life.
func TestAnnounceBeforeJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		members[2].announce(t, 4, 0)
		time.Sleep(time.Second)
		n.Crash(members[2].wire.Self())

		next := start(t, n, "peer2")
		next.announce(t, 1, 50)
		next.join(t, members[0])
		for former := uint64(0); former != 4; former, _ = next.book.highest(next.wire.Self()) {
			<-next.Changed()
		}
		for _, r := range members[0].Members() {
			if r.Steps == 50 {
				t.Error("a record of a past incarnation was believed")
			}
		}
		members[2] = next
		next.announce(t, 5, 51)
		within(t, gossipMissed, members, "the new life is seen", func(records []transport.Record) bool {
			return slices.ContainsFunc(records, func(r transport.Record) bool { return r.Steps == 51 })
		})
	})
}

func TestChangedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := cluster(t, newNetwork(), 2)
		time.Sleep(5 * time.Second)
		a, b := members[0], members[1]
		select {
		case <-a.Changed():
		default:
			t.Fatal("no signal after a join")
		}
		time.Sleep(5 * time.Second)
		if len(a.Changed()) != 0 {
			t.Error("a signal though nothing changed")
		}
		b.announce(t, 1, 9)
		<-a.Changed()
		if got, want := a.seen(members), "peer0:1:0 peer1:1:9"; got != want {
			t.Errorf("after the signal: %s, want %s", got, want)
		}
		b.Close()
		<-a.Changed()
		if got, want := a.seen(members), "peer0:1:0"; got != want {
			t.Errorf("after the second signal: %s, want %s", got, want)
		}
	})
}

func TestAnnounceIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 4)
		n.Cut(members[0].wire.Self(), members[1].wire.Self())
		began := time.Now()
		for i := range 10 {
			members[0].announce(t, 1, uint64(i))
		}
		if took := time.Since(began); took > time.Millisecond {
			t.Errorf("ten announcements took %v", took)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 3)
		done := make(chan struct{})
		for range 2 {
			go func() {
				members[0].Close()
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		members[0].Close()
		if err := members[0].Announce(members[0].record(1, 1)); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("announce: %v", err)
		}
		if err := members[0].Join(t.Context(), members[1].wire.Self()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("join: %v", err)
		}
		if got := len(members[0].Members()); got != 0 {
			t.Errorf("%d members after close", got)
		}
		// The transport is not the membership's to close, and a next membership
		// may use it.
		again, err := New(Config{Transport: members[0].wire, Run: testRun})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := again.Join(t.Context(), members[1].wire.Self()); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseInTrouble closes members whose peers do not answer, with probes and
// joins under way: it must end in a bounded time and leave no goroutine.
func TestCloseInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 4)
		time.Sleep(3 * time.Second)
		for _, m := range members[1:] {
			n.Cut(members[0].wire.Self(), m.wire.Self())
		}
		time.Sleep(1300 * time.Millisecond)
		fault := make(chan error, 1)
		go func() { fault <- members[0].Join(t.Context(), members[1].wire.Self()) }()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		members[0].Close()
		if took := time.Since(began); took > leaveTimeout+drainTimeout+maxAwareness*probeInterval {
			t.Errorf("Close took %v", took)
		}
		if err := <-fault; err == nil {
			t.Error("a join across a cut link that was closed succeeded")
		}
	})
}

func TestConfig(t *testing.T) {
	_, err := New(Config{Run: strings.Repeat("x", 65), RejoinEvery: -1})
	for _, fault := range []string{"Transport is missing", "Run has 65 bytes", "RejoinEvery"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("the error does not mention %q: %v", fault, err)
		}
	}
}

// TestRealTime is a small cluster outside a bubble, for the race detector.
func TestRealTime(t *testing.T) {
	t.Parallel()
	members := cluster(t, memnet.New(memnet.Config{}), 3)
	defer func() { closeAll(members) }()
	deadline := time.Now().Add(time.Minute)
	for _, m := range members {
		for len(m.Members()) < 3 {
			if time.Now().After(deadline) {
				t.Fatal("three members do not find each other")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

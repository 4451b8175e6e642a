package copying

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestPoolSharesSlicesOut lets state servers of any speed give, leave and lie in any order:
// no slice is ever asked of more than two, none is asked of one state server twice at once,
// and while one honest state server stays the pool comes to an end.
func TestPoolSharesSlicesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "slices")
		pool := newPool(n)
		now := time.Unix(0, 0)
		var servers []*asker
		for i := range rapid.IntRange(1, 4).Draw(t, "donors") {
			servers = append(servers, pool.enter(transport.PeerID(fmt.Sprint("donor-", i)), rapid.IntRange(2, 9).Draw(t, "window")))
		}
		honest := servers[0]
		for turn := 0; !pool.done(); turn++ {
			if turn > 200*n+1000 {
				t.Fatalf("no end: %d slices of %d are left", pool.remaining(), n)
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second}).Draw(t, "time"))
			which := rapid.IntRange(0, len(servers)-1).Draw(t, "donor")
			d := servers[which]
			comeBack := func() {
				pool.leave(d)
				servers[which] = pool.enter(d.server, d.window)
			}
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case d != honest && what == 0:
				comeBack()
			case d != honest && what == 1:
				pool.disown(d.server)
			default:
				pool.take(d, now, nil)
				if expected(d) >= 0 && !pool.deliver(d, now, func() bool { return what != 2 || d == honest }) {
					comeBack()
				}
			}
			checkPool(t, pool, servers)
		}
		if given, _ := pool.result(); sum(given) != n {
			t.Fatalf("%v are %d slices of %d", given, sum(given), n)
		}
	})
}

// expected is the slice that a state server has to send next, or -1.
func expected(a *asker) int {
	if len(a.queue) == 0 {
		return -1
	}
	return a.queue[0]
}

func sum(counts map[transport.PeerID]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// checkPool holds a pool's account against its queues.
func checkPool(t *rapid.T, pool *pool, servers []*asker) {
	asked, left := make([]int, len(pool.slices)), 0
	for _, d := range servers {
		mine := map[int]bool{}
		for _, i := range d.queue {
			if mine[i] {
				t.Fatalf("slice %d is asked of %s twice", i, d.server)
			}
			mine[i] = true
			asked[i]++
		}
		if len(d.queue) > d.window {
			t.Fatalf("%d slices under way in a window of %d", len(d.queue), d.window)
		}
	}
	for i, s := range pool.slices {
		if s.asked != asked[i] || asked[i] > maxAskers {
			t.Fatalf("slice %d is asked of %d donors, the account says %d", i, asked[i], s.asked)
		}
		if s.source == "" {
			left++
			if s.asked == 0 && i < pool.next {
				t.Fatalf("slice %d is free, and looked for from %d on", i, pool.next)
			}
		}
	}
	if left != pool.left {
		t.Fatalf("%d slices are left, the account says %d", left, pool.left)
	}
}

// TestASlowDonorsSlicesAreTakenOver: a state server that is silent keeps no slice to itself.
func TestASlowDonorsSlicesAreTakenOver(t *testing.T) {
	pool, now := newPool(20), time.Unix(0, 0)
	slow, fast := pool.enter("slow", 8), pool.enter("fast", 8)
	pool.take(slow, now, nil)
	for !pool.done() {
		pool.take(fast, now, nil)
		now = now.Add(10 * time.Millisecond)
		if expected(fast) >= 0 {
			pool.deliver(fast, now, func() bool { return true })
		}
		if now.After(time.Unix(1, 0)) {
			t.Fatalf("%d slices are left after a second", pool.left)
		}
	}
	if given, again := pool.result(); given["fast"] != 20 || again != 8 {
		t.Errorf("%d slices of the fast donor, %d asked for twice; want 20 and 8", given["fast"], again)
	}
	if expected(slow) != 0 {
		t.Errorf("the slow donor owes slice %d first, want 0", expected(slow))
	}
}

// TestEquallyFastDonorsAreNotAskedTwice: what is nearly here is waited for.
func TestEquallyFastDonorsAreNotAskedTwice(t *testing.T) {
	pool, now := newPool(100), time.Unix(0, 0)
	askers := []*asker{pool.enter("one", 8), pool.enter("two", 8)}
	for !pool.done() {
		now = now.Add(time.Millisecond)
		for _, a := range askers {
			pool.take(a, now, nil)
			if expected(a) >= 0 {
				pool.deliver(a, now, func() bool { return true })
			}
		}
	}
	if pool.retransmitted != 0 {
		t.Errorf("%d slices were asked for twice", pool.retransmitted)
	}
	sources, _ := pool.result()
	for server, given := range sources {
		if given < 40 {
			t.Errorf("%s gave %d of 100", server, given)
		}
	}
}

package meetings_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/meetings"
)

var histories = flag.Int("histories", 20, "how many histories TestAnyHistory tries")

// meeter is Meetings.Gather of one process.
type meeter func(ctx context.Context, m *member) (all [][]byte, err error)

// play is members that meet, while a test changes their world.
type play struct {
	*world
	t       *testing.T
	ctx     context.Context
	all     sync.WaitGroup
	stops   map[int]context.CancelFunc
	every   map[int]time.Duration // its pauses
	full    time.Time             // when all that are up met last
	partial time.Time             // when some met last without the others
	longest time.Duration         // a member has waited
	last    string
}

func begin(t *testing.T, timeout time.Duration) *play {
	ctx, cancel := context.WithCancel(t.Context())
	p := &play{world: &world{timeout: timeout}, t: t, ctx: ctx, stops: map[int]context.CancelFunc{}, every: map[int]time.Duration{}}
	p.held = func(name string, who []*member) {
		up := 0
		for _, m := range p.members {
			if m.up {
				up++
			}
		}
		if len(who) == up {
			p.full, p.last = time.Now(), name
		} else {
			p.partial = time.Now()
		}
	}
	t.Cleanup(func() {
		cancel()
		p.all.Wait()
	})
	return p
}

// start starts a member, or starts it again.
func (p *play) start(id, side int) {
	p.stop(id)
	m, meet := p.join(id, side), meets()
	ctx, cancel := context.WithCancel(p.ctx)
	p.stops[id] = cancel
	p.all.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			_, err := meet(ctx, m)
			p.mu.Lock()
			p.longest = max(p.longest, time.Since(began))
			pauses := p.every[id]
			p.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				p.t.Errorf("member %d: %v", id, err)
			}
			pause(ctx, pauses)
		}
	})
}

// restart stops a member, and starts it when the others have noticed and met.
func (p *play) restart(id, side int) {
	p.stop(id)
	time.Sleep(5 * time.Second)
	p.start(id, side)
}

// stop kills a member.
func (p *play) stop(id int) {
	if p.stops[id] != nil {
		p.stops[id]()
		p.change(func() {
			for _, m := range p.members {
				m.up = m.up && m.id != id
			}
		})
	}
}

// heal lets all reach each other, and tells after how long all are at one meeting for good.
func (p *play) heal(seed uint64) (took time.Duration) {
	bound, healed := 2*(p.timeout+meetings.Patience), time.Now()
	p.change(func() {
		for _, m := range p.members {
			m.side = 0
		}
	})
	time.Sleep(bound)
	p.change(func() { p.longest = 0 })
	time.Sleep(2 * time.Minute)
	p.mu.Lock()
	defer p.mu.Unlock()
	took = p.partial.Sub(healed)
	if took > bound || time.Since(p.full) > 20*time.Second {
		p.t.Errorf("seed %d, timeout %s: some met without others %s after all reached each other, all met last %s ago, at %s", seed, p.timeout, took, time.Since(p.full), p.last)
	}
	return took
}

// TestFlapping: one whose partner comes and goes finds it once it stays, within the bound that the package names.
func TestFlapping(t *testing.T) {
	longest := time.Duration(0)
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			p, chance := begin(t, time.Minute), rand.New(rand.NewPCG(seed, 0))
			p.every[0], p.every[1] = time.Second, time.Second
			p.start(0, 0)
			p.start(1, 0)
			time.Sleep(time.Minute)
			for range 20 {
				p.change(func() {
					p.members[1].side = 1 - p.members[1].side
					p.every[1] = time.Duration(1+chance.IntN(8)) * time.Second
				})
				time.Sleep(time.Duration(chance.Float64() * 5 * float64(time.Second)))
			}
			longest = max(longest, p.heal(seed))
		})
	}
	t.Logf("all are at one meeting within %s", longest)
}

// TestAnyHistory: members come, go, come back as newcomers, and reach each other or not, for minutes or hours, at paces of their own;
// whenever all can reach each other, all are soon at one meeting.
func TestAnyHistory(t *testing.T) {
	longest := time.Duration(0)
	for seed := range uint64(*histories) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			p, size := begin(t, time.Duration(40+chance.IntN(31))*time.Second), 2+chance.IntN(4)
			for id := range size {
				p.every[id] = time.Duration(300+chance.IntN(3000)) * time.Millisecond
				p.start(id, 0)
			}
			for range 1 + chance.IntN(3) { // each ends with all together
				for range 1 + chance.IntN(12) {
					switch id := chance.IntN(size); chance.IntN(4) {
					case 0:
						p.stop(id)
					case 1:
						p.restart(id, chance.IntN(2))
					default:
						p.change(func() {
							for _, m := range p.members {
								m.side = chance.IntN(3)
							}
						})
					}
					span := []time.Duration{3 * time.Second, 40 * time.Second, 5 * time.Minute, time.Hour}[chance.IntN(4)]
					time.Sleep(time.Duration(chance.Float64() * float64(span)))
				}
				p.restart(0, 0) // somebody is there
				longest = max(longest, p.heal(seed))
			}
		})
	}
	t.Logf("all are at one meeting within %s", longest)
}

func meets() meeter {
	m := new(meetings.Meetings)
	return func(ctx context.Context, at *member) ([][]byte, error) {
		all, err := m.Gather(ctx, at, "a test", []byte{1})
		if errors.Is(err, meetings.ErrMissed) {
			err = nil
		}
		return all, err
	}
}

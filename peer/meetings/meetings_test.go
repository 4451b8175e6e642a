package meetings_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/meetings"
)

// meeter is Meetings.Gather of one process.
type meeter func(ctx context.Context, m *member) (all [][]byte, err error)

// play is members that meet, while a test changes their world.
type play struct {
	*world
	t       *testing.T
	ctx     context.Context
	all     sync.WaitGroup
	meets   func() meeter
	stops   map[int]context.CancelFunc
	every   map[int]time.Duration // its pauses
	full    time.Time             // when all that are up met last
	partial time.Time             // when some met last without the others
	longest time.Duration         // a member has waited
	last    string
}

func begin(t *testing.T, timeout time.Duration, meets func() meeter) *play {
	ctx, cancel := context.WithCancel(t.Context())
	p := &play{world: &world{timeout: timeout}, t: t, ctx: ctx, meets: meets, stops: map[int]context.CancelFunc{}, every: map[int]time.Duration{}}
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
	m, meet := p.join(id, side), p.meets()
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
func (p *play) heal(bound time.Duration) (took time.Duration, together bool) {
	healed := time.Now()
	p.change(func() {
		for _, m := range p.members {
			m.side = 0
		}
		p.longest = 0
	})
	time.Sleep(bound)
	p.mu.Lock()
	defer p.mu.Unlock()
	took = p.partial.Sub(healed)
	return took, p.full.After(p.partial) && time.Since(p.full) < bound/2
}

// TestFlapping: one whose partner comes and goes finds it once it stays.
func TestFlapping(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			p, chance := begin(t, time.Minute, meets), rand.New(rand.NewPCG(seed, 0))
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
			took, together := p.heal(40 * time.Minute)
			fmt.Println(seed, took, together, p.last, p.longest)
		})
	}
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

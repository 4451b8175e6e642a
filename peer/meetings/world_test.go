package meetings_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer"
)

const (
	roundTrip = 2 * time.Millisecond
	mostOver  = 4096 // ended gatherings, as in internal/sums
)

// world is members in virtual time, some of whom cannot reach others. Its gatherings are like those of real members: one waits for who
// took part in the last and can be reached, no longer than timeout, and who was not there hears that it is over.
type world struct {
	mu      sync.Mutex
	timeout time.Duration
	members []*member
	held    func(name string, who []*member) // with mu held
}

// member is one process of a member at a time.
type member struct {
	*world
	id    int // coordinators go by it
	side  int // who has another cannot be reached
	up    bool
	over  *simplelru.LRU[string, bool] // what it knows to be over
	group []*member                    // of the last gathering that it coordinated
	leads *member                      // who coordinated its last
	calls map[string]*call
}

// call is a member in a gathering.
type call struct {
	data  []byte
	since time.Time // the last who came to it
	ended chan outcome
}

type outcome struct {
	all [][]byte
	err error
}

// join adds a member, or one that has restarted if there was one with this id.
func (w *world) join(id, side int) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := &member{world: w, id: id, side: side, up: true, calls: map[string]*call{}}
	m.over, _ = simplelru.NewLRU[string, bool](mostOver, nil)
	w.members = append(slices.DeleteFunc(w.members, func(o *member) bool { return o.id == id }), m)
	slices.SortFunc(w.members, func(a, b *member) int { return a.id - b.id })
	w.goOn()
	return m
}

// change changes who is there and who reaches whom.
func (w *world) change(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
	for _, m := range w.members {
		if m.leads != nil && !m.sees(m.leads) {
			m.leads, m.group = nil, nil
		}
	}
	w.goOn()
}

func (m *member) sees(o *member) bool {
	return m.up && o.up && m.side == o.side && slices.Contains(m.members, o)
}

// Gather is as peer.Node.Gather.
func (m *member) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	m.mu.Lock()
	c := &call{data: data, since: time.Now(), ended: make(chan outcome, 1)}
	if _, over := m.over.Get(name); over { // and is remembered anew
		m.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", name, peer.ErrSumOver)
	}
	if m.calls[name] != nil {
		panic("twice in " + name)
	}
	m.calls[name] = c
	m.mu.Unlock()
	pause(ctx, roundTrip)
	m.mu.Lock()
	for _, o := range m.members {
		if m.sees(o) && o.calls[name] != nil {
			o.calls[name].since = time.Now()
		}
	}
	m.goOn()
	m.mu.Unlock()
	late := time.AfterFunc(m.timeout+roundTrip, func() { m.change(func() {}) })
	defer late.Stop()
	select {
	case o := <-c.ended:
		return o.all, o.err
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, name)
	select {
	case o := <-c.ended: // just before
		return o.all, o.err
	default:
		return nil, ctx.Err()
	}
}

// goOn ends the gatherings that can end. The lock is held.
func (w *world) goOn() {
	for again := true; again; {
		again = false
		for _, m := range w.members {
			names := make([]string, 0, len(m.calls))
			for name := range m.calls {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				again = w.try(m, name) || again
			}
		}
	}
}

// try ends the gathering of a name among those that a member reaches, if it can.
func (w *world) try(m *member, name string) bool {
	if m.calls[name] == nil || !m.sees(m) {
		return false
	}
	var here, came []*member
	var coordinator *member
	over := false
	for _, o := range w.members {
		if !m.sees(o) {
			continue
		}
		if here = append(here, o); o.calls[name] != nil {
			came = append(came, o)
		}
		if o.leads == o && coordinator == nil { // of two sides' the first goes on
			coordinator = o
		}
		_, was := o.over.Peek(name)
		over = over || was
	}
	expected := here
	if coordinator == nil {
		coordinator = here[0]
	} else if coordinator.group != nil {
		expected = coordinator.group
	}
	if over {
		for _, o := range came {
			o.over.Add(name, false)
			o.end(name, nil, fmt.Errorf("%s: %w", name, peer.ErrSumOver))
		}
		return true
	}
	late := !slices.ContainsFunc(came, func(o *member) bool { return time.Since(o.calls[name].since) < w.timeout })
	missing := slices.ContainsFunc(expected, func(o *member) bool { return m.sees(o) && o.calls[name] == nil })
	if missing && !late {
		return false
	}
	var all [][]byte
	for _, o := range came {
		all = append(all, o.calls[name].data)
	}
	for _, o := range came {
		o.over.Add(name, true)
		o.leads = coordinator
		o.end(name, all, nil)
	}
	coordinator.leads, coordinator.group = coordinator, came
	w.held(name, came)
	return true
}

func (m *member) end(name string, all [][]byte, err error) {
	m.calls[name].ended <- outcome{all, err}
	delete(m.calls, name)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

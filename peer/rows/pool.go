package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// ErrAnswer: the answer of a holder does not fit the question. To be tested with errors.Is.
var ErrAnswer = errors.New("not what was asked for")

// pool draws rows from holders. Each question has a stream of its own, on which the taker later reports what became of the rows.
// So no question waits for another, and a holder that passes rows on waits only for holders with fewer hops left.
type pool struct {
	service *peer.Service
	self    transport.PeerID
	few     int // the most holders that are asked
	most    int // the most bytes of an answer
	seed    uint64
	check   Check
	log     *zap.Logger
	streams tasks.Group
	buffers idle.Pool[[]byte] // reused for answers: fresh memory for each would push a model out of the processor's cache

	mu     sync.Mutex
	chance *rand.Rand
	rests  map[transport.PeerID]rest
	fault  error // the last fault of a holder
	taken  map[transport.PeerID]Counts
}

func newPool(self transport.PeerID, with FromConfig) *pool {
	return &pool{
		self: self, few: math.MaxInt, most: with.Bytes, seed: with.Seed, check: with.Check, log: cmp.Or(with.Log, zap.NewNop()),
		chance: rand.New(rand.NewPCG(with.Seed, self.Fingerprint())), rests: map[transport.PeerID]rest{}, taken: map[transport.PeerID]Counts{},
		buffers: idle.NewPool(maxBuffers, func() []byte { return nil }),
	}
}

// rest says until when a holder that failed is not asked, and how long that period is.
type rest struct {
	until time.Time
	gap   time.Duration
}

// source is a place to draw rows from: another holder, or this node itself.
type source struct {
	holder transport.PeerID
	rows   uint64
	draw   func(ctx context.Context, rows []uint32) (answer, error)
}

// sources are the holders that can be asked now. The fingerprints and the seed decide their order.
func (p *pool) sources(hops uint8) (all []source) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.rests, func(_ transport.PeerID, r rest) bool { return now.After(r.until.Add(r.gap)) })
	for _, r := range p.service.Records() {
		if r.Rows > 0 && !now.Before(p.rests[r.Peer].until) {
			all = append(all, source{r.Peer, min(r.Rows, math.MaxInt32), func(ctx context.Context, rows []uint32) (answer, error) {
				return p.ask(ctx, r.Peer, wire.Want{Rows: rows, Hops: hops})
			}})
		}
	}
	rank := func(s source) uint64 { return s.holder.Fingerprint() ^ p.self.Fingerprint() ^ p.seed }
	slices.SortFunc(all, func(a, b source) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// draw draws the rows that each part needs, with the same chance for each row of all sources. It subtracts the rows that arrived
// from need, where more than 0 remains if the sources have no rows now.
func (p *pool) draw(ctx context.Context, need []uint32, from func() []source) (all []answer) {
	dry := map[transport.PeerID]bool{} // sources that have none now, or fail: the others are asked
	for count(need) > 0 && ctx.Err() == nil {
		others := slices.DeleteFunc(from(), func(s source) bool { return dry[s.holder] })
		sources := others[:min(len(others), p.few)]
		weights, got := make([]uint64, len(sources)), make([]answer, len(sources))
		for i, s := range sources {
			weights[i] = s.rows
		}
		if len(sources) == 0 {
			break
		}
		p.mu.Lock()
		by := handout.Draw(p.chance, need, weights)
		p.mu.Unlock()
		var group sync.WaitGroup
		for i, rows := range by {
			if count(rows) > 0 {
				group.Go(func() {
					began := time.Now()
					got[i], _ = sources[i].draw(ctx, rows) // the source has logged what was wrong
					if took := time.Since(began); len(others) > 1 && took > leastRest && 2*count(got[i].rows) < count(rows) && len(got[i].data) < maxAnswer/2 {
						p.gave(sources[i].holder, false, took) // little, and late
					}
				})
			}
		}
		group.Wait()
		for i, a := range got {
			if count(a.rows) > 0 {
				all = append(all, a)
			} else if count(by[i]) > 0 {
				dry[sources[i].holder] = true
			}
			for part, n := range a.rows {
				need[part] -= n
			}
		}
	}
	return all
}

// ask asks a holder for rows. Unless ctx has ended, an error is a *Fault, and the holder is not asked again for a while.
func (p *pool) ask(ctx context.Context, holder transport.PeerID, want wire.Want) (answer, error) {
	type outcome struct {
		answer
		err error
	}
	came, fate := make(chan outcome, 2), make(chan wire.Done, 1)
	talk := func(s *framed.Stream) error {
		got, err := p.converse(s, want)
		of := answer{rows: got.rows}
		if err != nil {
			return err
		}
		if want.Hops == 0 || count(of.rows) == 0 {
			came <- outcome{answer: got}
			return nil
		}
		p.count(holder, func(n *Counts) { n.Out(count(of.rows)) })
		got.settle = func(trained, lost int) {
			p.count(holder, func(n *Counts) { n.Back(of.fates(trained, lost)) })
			fate <- wire.Done{Trained: uint8(trained), Lost: uint8(lost)} // if the stream has ended, the holder counts them as lost
		}
		came <- outcome{answer: got}
		got = answer{} // frees the memory: its fate may be known only much later
		select {
		case done := <-fate:
			err = framed.Say(s, 0, done)
		case <-ctx.Done():
		}
		s.Finish()
		return err
	}
	if !p.streams.Spawn(func() { came <- outcome{err: p.service.Ask(ctx, holder, talk)} }) {
		return answer{}, peer.ErrClosed
	}
	began := time.Now()
	first := <-came
	got, err := first.answer, first.err
	if ctx.Err() != nil && err != nil {
		return answer{}, ctx.Err()
	}
	if err == nil {
		p.gave(holder, want.Hops == 0 || count(got.rows) > 0, time.Since(began))
		return got, nil
	}
	fault := &Fault{holder, err}
	gap := p.failed(fault, time.Since(began))
	p.log.Warn("a holder of rows is left alone for a while; others are asked", zap.String("peer", string(holder)), zap.Duration("period", gap), zap.Error(err))
	return answer{}, fault
}

// gave forgets failures of a holder that has given what it was asked for. One that had nothing, or little, and was slow to say so, rests.
func (p *pool) gave(holder transport.PeerID, something bool, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.rests, holder); !something {
		p.rests[holder] = rest{until: time.Now().Add(waste * took)}
	}
}

// failed has a holder rest, and returns for how long.
func (p *pool) failed(fault *Fault, took time.Duration) (gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap = min(max(2*p.rests[fault.Partner].gap, leastRest), mostRest)
	if errors.Is(fault, wire.ErrMessage) || errors.Is(fault, ErrAnswer) {
		gap = mostRest
	}
	gap = max(gap, waste*took)
	p.rests[fault.Partner], p.fault = rest{time.Now().Add(gap), gap}, fault
	return gap
}

// converse sends a question, and receives and checks the answer.
func (p *pool) converse(s *framed.Stream, want wire.Want) (got answer, err error) {
	if err = framed.Say(s, 0, want); err != nil {
		return got, err
	}
	s.Bulk()
	stall := s.Stall
	defer func() { s.Stall, s.Until = stall, time.Time{} }()
	for range int(want.Hops) - 1 { // a holder that passes rows on waits for others first
		s.Stall += stall + longest
	}
	var m wire.Rows
	if _, err = s.Receive(&m); err != nil {
		return got, err
	}
	s.Stall = stall
	fits, size, most := len(m.Rows) == len(want.Rows), count(m.Bytes), p.most
	if want.Hops == 0 {
		most = max(most, maxAnswer) // About bounds all that comes
	}
	for i, n := range m.Rows {
		fits = fits && n <= want.Rows[i]
	}
	if !fits || size > most {
		return got, fmt.Errorf("rows %v in %d bytes, where at most %v are due, and %d bytes: %w", m.Rows, size, want.Rows, most, ErrAnswer)
	}
	s.Until, s.Late = time.Now().Add(longest), fmt.Errorf("%d bytes take longer than %v: %w", size, longest, ErrAnswer)
	rows, sizes, data := slices.Clone(m.Rows), slices.Clone(m.Bytes), slices.Grow(p.buffers.Take()[:0], size)
	for data = append(data, m.Data...); len(data) < size; data = append(data, m.Data...) {
		if _, err = s.Receive(&m); err == nil && (len(m.Rows) > 0 || len(m.Data) == 0) {
			err = fmt.Errorf("%d parts in %d bytes, where more of the answer is due: %w", len(m.Rows), len(m.Data), ErrAnswer)
		}
		if err != nil {
			return got, err
		}
	}
	if len(data) > size {
		return got, fmt.Errorf("%d bytes, where %d are due: %w", len(data), size, ErrAnswer)
	}
	if n := count(rows); p.check != nil && n > 0 && want.Hops > 0 {
		if err = p.check(n, data); err != nil {
			return got, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return answer{rows, sizes, data, func(int, int) {}}, nil
}

// count changes the counts of a holder's rows.
func (p *pool) count(holder transport.PeerID, how func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.taken[holder]; !known && len(p.taken) >= maxKnown {
		holder = "" // stands for all that come later
	}
	n := p.taken[holder]
	how(&n)
	p.taken[holder] = n
	p.service.Count(func(_, taken *Counts) { how(taken) })
}

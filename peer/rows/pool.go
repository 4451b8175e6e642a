package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Errors, to be tested with errors.Is.
var (
	// ErrNoHolder: no member gives rows, or none that answers.
	ErrNoHolder = errors.New("no member gives rows")
	// ErrAnswer: a holder has answered what was not asked.
	ErrAnswer = errors.New("not what was asked for")
)

// pool draws rows from holders. It asks over streams of its own, one question at a time on each; so nothing waits for
// another, and who passes rows on waits only for those with fewer hops left.
type pool struct {
	service *peer.Service
	self    transport.PeerID
	few     int // holders that it speaks to, 0 for all
	most    int // bytes of an answer
	seed    uint64
	check   func(of Holding, rows int, data []byte) error
	log     *zap.Logger

	mu     sync.Mutex
	kind   string // of rows, once known
	chance *rand.Rand
	idle   map[transport.PeerID][]*conn
	rests  map[transport.PeerID]rest
	fault  error             // the last
	taken  map[string]Counts // by holder and life: what became of its own rows
	all    Counts            // of all rows
}

func newPool(self transport.PeerID, with FromConfig) *pool {
	return &pool{
		self: self, few: with.Holders, most: with.Bytes, seed: with.Seed, check: with.Check, log: with.Log, kind: with.Kind,
		chance: rand.New(rand.NewPCG(with.Seed, self.Fingerprint())), idle: map[transport.PeerID][]*conn{},
		rests: map[transport.PeerID]rest{}, taken: map[string]Counts{},
	}
}

// rest is until when a holder is left alone.
type rest struct {
	until time.Time
	gap   time.Duration
}

// conn is a stream to a holder. Who asks reads from it; anybody may tell what became of rows.
type conn struct {
	framed.Stream
	said Holding
	next uint64
	send sync.Mutex
}

func (c *conn) say(number uint64, m wire.Message) error {
	c.send.Lock()
	defer c.send.Unlock()
	return framed.Say(&c.Stream, number, m)
}

// source is where rows can be drawn from: a holder, or this node itself.
type source struct {
	holder transport.PeerID
	rows   uint64
	draw   func(ctx context.Context, rows int) (piece, error)
}

// sources are the holders that can be asked now, in an order by their fingerprints and the seed.
func (p *pool) sources(hops uint8) (all []source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.service.Records() {
		if r.Rows > 0 && !time.Now().Before(p.rests[r.Peer].until) {
			all = append(all, source{r.Peer, min(r.Rows, 1<<40), func(ctx context.Context, rows int) (piece, error) {
				got, _, err := p.ask(ctx, r.Peer, wire.Want{Rows: uint32(rows), Hops: hops})
				return got, err
			}})
		}
	}
	rank := func(s source) uint64 { return s.holder.Fingerprint() ^ p.self.Fingerprint() ^ p.seed }
	slices.SortFunc(all, func(a, b source) int { return cmp.Compare(rank(a), rank(b)) })
	if p.few > 0 && len(all) > p.few {
		all = all[:p.few]
	}
	return all
}

// draw draws so many rows from sources, each row of all with the same chance. Where they have none now it gives fewer.
func (p *pool) draw(ctx context.Context, rows int, from func() []source) (all []piece, err error) {
	for rows > 0 && ctx.Err() == nil {
		sources := from()
		if len(sources) == 0 {
			return all, ErrNoHolder
		}
		weights := make([]uint64, len(sources))
		for i, s := range sources {
			weights[i] = s.rows
		}
		p.mu.Lock()
		counts := handout.Draw(p.chance, rows, weights)
		p.mu.Unlock()
		got, faults, came := make([]piece, len(sources)), make([]error, len(sources)), 0
		var group sync.WaitGroup
		for i, n := range counts {
			if n > 0 {
				group.Go(func() { got[i], faults[i] = sources[i].draw(ctx, n) })
			}
		}
		group.Wait()
		for _, g := range got {
			if g.rows > 0 {
				all, came = append(all, g), came+g.rows
			}
		}
		if rows -= came; came == 0 && errors.Join(faults...) == nil {
			break
		}
	}
	return all, ctx.Err()
}

// ask asks a holder for rows, on a stream that nobody uses or a new one. An error is a *Fault, which the holder is left
// alone for, unless ctx has ended.
func (p *pool) ask(ctx context.Context, holder transport.PeerID, want wire.Want) (got piece, said Holding, err error) {
	p.mu.Lock()
	var c *conn
	if idle := p.idle[holder]; len(idle) > 0 {
		c, p.idle[holder] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	p.mu.Unlock()
	if c == nil {
		c, err = p.dial(ctx, holder)
	}
	if err == nil {
		stop := context.AfterFunc(ctx, c.Reset)
		if got, err = p.converse(c, want); !stop() && err == nil {
			got.settle(handout.Returned)
			err = ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.idle[holder] = append(p.idle[holder], c)
		delete(p.rests, holder)
		return got, c.said, nil
	}
	if c != nil {
		c.Reset()
	}
	if ctx.Err() != nil {
		return piece{}, said, ctx.Err()
	}
	r := p.rests[holder]
	if r.gap = min(max(2*r.gap, leastRest), mostRest); errors.Is(err, wire.ErrMessage) || errors.Is(err, ErrAnswer) {
		r.gap = mostRest
	}
	r.until, p.fault = time.Now().Add(r.gap), &Fault{holder, err}
	p.rests[holder] = r
	p.log.Warn("a holder of rows is left alone for a while; others are asked", zap.String("peer", string(holder)), zap.Duration("period", r.gap), zap.Error(err))
	return piece{}, said, p.fault
}

// dial opens a stream to a holder.
func (p *pool) dial(ctx context.Context, holder transport.PeerID) (*conn, error) {
	stream, err := p.service.Open(ctx, holder)
	if err != nil {
		return nil, err
	}
	c := &conn{}
	defer context.AfterFunc(ctx, stream.Reset)()
	c.Begin(stream, stall)
	if err = c.say(0, Holding{Kind: p.kindOf("")}); err == nil {
		_, err = c.Receive(&c.said)
	}
	if kind := p.kindOf(c.said.Kind); err == nil && kind != c.said.Kind {
		err = fmt.Errorf("rows of kind %q, want %q: %w", c.said.Kind, kind, ErrAnswer)
	}
	c.Limit(wire.MaxPayload)
	return c, err
}

// here tells whether one is a member.
func (p *pool) here(id transport.PeerID) bool {
	return slices.ContainsFunc(p.service.Records(), func(r transport.Record) bool { return r.Peer == id })
}

// account is the name of a holder in one of its lives.
func account(holder transport.PeerID, life uint64) string { return fmt.Sprintf("%s/%x", holder, life) }

// kindOf is the kind of all rows: the first that is said, unless it is given.
func (p *pool) kindOf(said string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind = cmp.Or(p.kind, said)
	return p.kind
}

// converse asks a question, and takes the answer. Memory grows with what comes.
func (p *pool) converse(c *conn, want wire.Want) (got piece, err error) {
	c.next++
	number := c.next
	if err := c.say(number, want); err != nil {
		return got, err
	}
	var m wire.Rows
	for first := true; first || len(got.data) < int(m.Total); first = false {
		header, err := c.Receive(&m)
		if err != nil {
			return got, err
		}
		if first {
			got.rows, got.own = int(m.Rows), int(m.Own)
		}
		if header.Exchange != number || m.Rows > want.Rows || (m.Rows == 0) != (m.Total == 0) || int(m.Total) > p.most ||
			int(m.Offset) != len(got.data) || got.rows != int(m.Rows) || got.own != int(m.Own) {
			return got, fmt.Errorf("%d rows in %d bytes, from byte %d on, where %d and at most %d bytes are due: %w", m.Rows, m.Total, m.Offset, want.Rows, p.most, ErrAnswer)
		}
		got.data = append(got.data, m.Data...)
	}
	if p.check != nil && got.rows > 0 {
		if err := p.check(c.said, got.rows, got.data); err != nil {
			return got, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	got.settle = func(handout.Fate) {}
	if rows, own := got.rows, got.own; rows > 0 && !want.HeldOut {
		name := account(c.Remote(), c.said.Life)
		p.count(name, rows, own, 0)
		got.settle = func(fate handout.Fate) {
			p.count(name, rows, own, fate)
			_ = c.say(number, wire.Done{Fate: uint8(fate)}) // if the stream has ended, they are lost there
		}
	}
	return got, nil
}

// count counts rows that came, if fate is 0, or what became of them.
func (p *pool) count(name string, rows, own int, fate handout.Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[name] = counted(p.taken[name], uint64(own), fate)
	p.all = counted(p.all, uint64(rows), fate)
}

func counted(c Counts, n uint64, fate handout.Fate) Counts {
	switch c.Outstanding -= n; fate {
	case 0:
		c.HandedOut, c.Outstanding = c.HandedOut+n, c.Outstanding+2*n
	case handout.Trained:
		c.Trained += n
	case handout.Returned:
		c.HandedOut -= n
	default:
		c.Lost += n
	}
	return c
}

// close ends all streams, on none of which is a question, in good order: the holders close them once they have read all.
func (p *pool) close() {
	var group sync.WaitGroup
	p.mu.Lock()
	for _, c := range slices.Concat(slices.Collect(maps.Values(p.idle))...) {
		group.Go(c.Finish)
	}
	clear(p.idle)
	p.mu.Unlock()
	group.Wait()
}

package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// HoldConfig says how a member gives its rows. All fields have useful zero values.
type HoldConfig struct {
	// About is sent to takers that ask for it, such as the form of the rows and rows for evaluation. At most 64 MiB. Default: empty.
	About []byte
	// Policy says how the rows of an epoch are divided. Seed decides the order of the rows in each epoch.
	Policy Policy
	Seed   uint64
	// Rate is the most that one partner is sent, in bytes per second; less than 512 KiB counts as these. Default: DefaultRate.
	Rate int
	// Check checks rows of other holders before this one passes them on. Default: no check.
	Check Check
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Holder gives the rows of one member to others. Safe for concurrent use.
type Holder struct {
	set    Set
	with   HoldConfig
	began  time.Time
	pool   *pool
	paces  *lru.Cache[transport.PeerID, *rate.Limiter]
	size   int // approximate bytes of a row
	unsent *unsent

	mu     sync.Mutex
	ledger *handout.Ledger
}

// Hold lets a node give the rows of a set to other members that ask. Close the Holder before the node. The owner of the
// rows has to decide this: every member of the run can read them.
func Hold(n *peer.Node, set Set, with HoldConfig) (*Holder, error) {
	ledger, err := handout.New(handout.Config{Rows: set.Rows(), Policy: with.Policy, Seed: with.Seed})
	if with.Rate < 0 {
		err = errors.Join(err, fmt.Errorf("a rate of %d bytes per second: want 0 or more", with.Rate))
	}
	if len(with.About) > wire.MaxRowsTotal {
		err = errors.Join(err, fmt.Errorf("what takers are told about the rows, with those to evaluate models with, has %d bytes: want at most %d", len(with.About), wire.MaxRowsTotal))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", peer.ErrConfig, err)
	}
	size, err := sizeOf(set)
	if err != nil {
		return nil, fmt.Errorf("looking at the rows that are to be given: %w", err)
	}
	with.Rate = max(cmp.Or(with.Rate, DefaultRate), leastRate)
	h := &Holder{set: set, with: with, began: time.Now(), ledger: ledger, size: size, unsent: newUnsent()}
	h.paces, _ = lru.New[transport.PeerID, *rate.Limiter](maxKnown) // fails for sizes below one only
	h.pool = newPool(n.Self(), FromConfig{Seed: with.Seed, Bytes: wire.MaxRowsTotal, Check: with.Check, Log: with.Log})
	served := make(chan struct{})
	h.pool.service, err = peer.Serve(n, transport.ProtocolRows, func(ctx context.Context, s *framed.Stream) error {
		select {
		case <-served: // a member may ask before Serve returns
			return h.answer(ctx, s)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	close(served)
	h.pool.service.Hold(uint64(set.Rows()))
	return h, nil
}

// sizeOf is the mean size of some rows that can be read: from all over the set, since the first may be unlike the others.
func sizeOf(set Set) (size int, err error) {
	some, read := []byte(nil), 0
	for i, all := 0, min(set.Rows(), looked); i < all && len(some) < appended; i++ {
		more, fault := set.Append(some, []int32{int32(i * (set.Rows() / all))})
		if err = cmp.Or(err, fault); fault == nil {
			some, read = more, read+1
		}
	}
	if read > 0 {
		err = nil
	}
	return max(len(some)/max(read, 1), 1), err
}

// Counts tells what became of the rows that were handed out. Rows that were passed on count at the holder that owns them.
func (h *Holder) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.Counts()
}

// Weigh gives a member that takes rows another weight than 1, until it is given another: of an epoch it is handed out so much
// more or less beside the others. Holders with the policy Random then divide by speed, and who has had its share of an epoch waits for the
// others. What comes through another holder counts for that one. At most 4,096 members have one.
func (h *Holder) Weigh(member transport.PeerID, weight float64) error {
	if !(weight > 0) || math.IsInf(weight, 1) {
		return fmt.Errorf("a weight of %v for %s: want a number above 0", weight, member)
	}
	known := false
	h.account(func(l *handout.Ledger, now time.Duration) { known = l.Weigh(string(member), weight, now) })
	if !known {
		return fmt.Errorf("a weight for %s: %d others have one already: give some of them the weight 1", member, handout.MaxWeights)
	}
	return nil
}

// Close stops giving rows. Rows whose fate takers have not reported count as lost. It waits for all streams, and is idempotent.
func (h *Holder) Close() error {
	h.pool.service.Hold(0)
	h.pool.service.Close()
	h.pool.streams.End()
	return nil
}

// answer answers a question of a taker, and records what became of the rows.
func (h *Holder) answer(ctx context.Context, s *framed.Stream) error {
	var want wire.Want
	if _, err := s.Receive(&want); err != nil {
		return err
	}
	out := h.out(s.Remote())
	if out >= maxOut {
		h.pool.log.Warn("refused one that asks for more rows than it tells the end of", zap.String("peer", string(s.Remote())), zap.Int("answers", out))
		s.Refuse(0, wire.ReasonBusy, fmt.Sprintf("%d answers of which it has not told what became of them", out))
		return nil
	}
	got, err := h.give(ctx, s, want)
	if errors.Is(err, errUnread) {
		h.pool.log.Warn("refused one that asks for more rows than it reads", zap.String("peer", string(s.Remote())))
		s.Refuse(0, wire.ReasonBusy, err.Error())
		return nil
	}
	var done wire.Done
	if err == nil && want.Hops > 0 && count(got.rows) > 0 {
		if done, err = h.fate(ctx, s); err == nil && int(done.Trained+done.Lost) > len(got.rows) {
			err = fmt.Errorf("%d parts of %d: %w", done.Trained+done.Lost, len(got.rows), wire.ErrMessage)
		}
	}
	if err != nil {
		done = wire.Done{Lost: uint8(len(got.rows))}
		h.pool.log.Info("what one that takes rows had of an answer is lost", zap.String("peer", string(s.Remote())), zap.Error(err))
	}
	got.settle(int(done.Trained), int(done.Lost))
	if err == nil {
		s.Finish()
	}
	return err
}

// errUnread refuses a question while answers to those before have not been read.
var errUnread = errors.New("answers that are made wait to be read")

// give makes an answer to a question of a taker, and sends it. What it returns has no data: the taker may report only much later.
func (h *Holder) give(ctx context.Context, s *framed.Stream, want wire.Want) (got answer, err error) {
	limit := 0
	if want.Hops > 0 {
		soon, end := context.WithTimeout(ctx, s.Stall/2) // the taker waits for Stall
		limit, err = h.unsent.reserve(soon, s.Remote(), h.limit(s.Remote()))
		if end(); err != nil {
			return answer{settle: func(int, int) {}}, cmp.Or(ctx.Err(), errUnread)
		}
	}
	got, err = h.rows(ctx, s.Remote(), want, limit)
	if want.Hops > 0 {
		h.unsent.add(s.Remote(), len(got.data)-limit)
		defer h.unsent.add(s.Remote(), -len(got.data))
		defer h.pool.buffers.Put(got.data)
	}
	if err == nil {
		err = h.send(ctx, s, got)
	}
	got.data = nil
	return got, err
}

// fate waits until a taker reports what became of an answer. A taker that is still a member may take long: it may be paused.
func (h *Holder) fate(ctx context.Context, s *framed.Stream) (done wire.Done, err error) {
	here := func(r transport.Record) bool { return r.Peer == s.Remote() }
	var late net.Error
	for {
		_, err = s.Receive(&done)
		if !errors.As(err, &late) || !late.Timeout() || ctx.Err() != nil || !slices.ContainsFunc(h.pool.service.Records(), here) {
			return done, err
		}
	}
}

// rows collects the answer to a question of a taker, of about limit bytes at most.
func (h *Holder) rows(ctx context.Context, taker transport.PeerID, want wire.Want, limit int) (got answer, err error) {
	switch want.Hops {
	case 0:
		rest := h.with.About[min(want.First, uint64(len(h.with.About))):]
		got.data = rest[:min(len(rest), maxAnswer)]
		n := uint32(len(got.data))
		got.rows, got.sizes, got.settle = []uint32{min(n, 1)}, []uint32{n}, func(int, int) {}
		return got, nil
	case 1:
		return h.draw(taker, want.Rows, limit)
	}
	if h.with.Policy != Random {
		return answer{settle: func(int, int) {}}, fmt.Errorf("%d hops to a holder that keeps shares for those that ask it: %w", want.Hops, wire.ErrMessage)
	}
	for i, left := 0, max(limit/h.size, 1); i < len(want.Rows); i++ { // about as much as an answer of this holder's own
		want.Rows[i] = min(want.Rows[i], uint32(left))
		left -= int(want.Rows[i])
	}
	self := source{h.pool.self, uint64(h.set.Rows()), func(_ context.Context, rows []uint32) (answer, error) { return h.draw(taker, rows, limit) }}
	all := h.pool.draw(ctx, slices.Clone(want.Rows), func() []source { return append(h.pool.sources(want.Hops-1), self) })
	return joined(len(want.Rows), all), ctx.Err()
}

// out is how many answers a taker has whose fate it has not told.
func (h *Holder) out(taker transport.PeerID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.Out(string(taker))
}

// limit is how many bytes the next answer of a taker may have: more for one that has many, else a large batch would need more than maxOut.
func (h *Holder) limit(taker transport.PeerID) int {
	return maxAnswer << (min(h.out(taker), maxOut-1) / outDoubles)
}

// draw hands out rows of this holder's own set: of each part at most as many as most says, and about limit bytes.
func (h *Holder) draw(taker transport.PeerID, most []uint32, limit int) (got answer, err error) {
	var run []int32
	h.account(func(l *handout.Ledger, now time.Duration) {
		run = l.Take(string(taker), min(count(most), max(limit/h.size, 1)), now)
	})
	parts := make([]uint32, len(most))
	got = answer{parts, make([]uint32, len(most)), slices.Grow(h.pool.buffers.Take()[:0], h.size*len(run)), func(int, int) {}}
	if len(run) > 0 {
		got.settle = func(trained, lost int) { h.settle(taker, run, parts, trained, lost) }
	}
	for i, rest := 0, run; i < len(most) && len(rest) > 0 && len(got.data) <= limit && err == nil; {
		n, before := min(most[i]-got.rows[i], uint32(len(rest)), uint32(max(appended/h.size, 1))), len(got.data)
		whole := got.data
		if got.data, err = h.set.Append(whole, rest[:n]); err != nil && n > 1 {
			n = 1 // the rows before the one that cannot be read are given
			got.data, err = h.set.Append(whole, rest[:1])
		}
		if err != nil {
			got.data = whole
			break
		}
		got.rows[i], got.sizes[i], rest = got.rows[i]+n, got.sizes[i]+uint32(len(got.data)-before), rest[n:]
		if got.rows[i] == most[i] {
			i++
		}
	}
	if err == nil || count(got.rows) > 0 { // a row that cannot be read comes back, and is the first of a run some time
		return got, nil
	}
	h.pool.log.Warn("a row cannot be read, and is left out of this epoch", zap.Int32("row", run[0]), zap.Error(err))
	h.account(func(l *handout.Ledger, now time.Duration) { l.Spoilt(string(taker), run, now) })
	got.settle = func(int, int) {}
	return got, nil
}

// settle records what became of a run, by its parts. A taker that has trained on none of it leaves, unless it holds other runs.
func (h *Holder) settle(taker transport.PeerID, run []int32, parts []uint32, trained, lost int) {
	h.account(func(l *handout.Ledger, now time.Duration) {
		l.Settle(string(taker), run, count(parts[:trained]), count(parts[trained:trained+lost]), now)
		if trained == 0 {
			l.Leave(string(taker), now)
		}
	})
}

// account changes the ledger, and with it the node's counts.
func (h *Holder) account(change func(l *handout.Ledger, now time.Duration)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.ledger.Counts()
	change(h.ledger, time.Since(h.began))
	h.pool.service.Count(func(held, _ *Counts) { held.Add(before, h.ledger.Counts()) })
}

// send sends an answer. The rate is limited for each taker, over all its streams together.
func (h *Holder) send(ctx context.Context, s *framed.Stream, got answer) (err error) {
	pace, _ := h.paces.Get(s.Remote())
	if pace == nil {
		pace = rate.NewLimiter(rate.Limit(h.with.Rate), h.with.Rate)
		h.paces.Add(s.Remote(), pace)
	}
	defer func() { s.Until = time.Time{} }()
	m := wire.Rows{Rows: got.rows, Bytes: got.sizes}
	for rest := got.data; err == nil && (m.Rows != nil || len(rest) > 0); m.Rows, m.Bytes = nil, nil {
		n := min(len(rest), wire.MaxRowsData)
		m.Data, rest = rest[:n], rest[n:]
		if err = pace.WaitN(ctx, max(n, 1)); err == nil {
			s.Frame = m.Append(wire.Reserve(s.Frame))
			err = s.Seal(wire.Header{Type: wire.TypeRows})
		}
		if s.Until.IsZero() { // the taker waits no longer either
			s.Until, s.Late = time.Now().Add(longest), fmt.Errorf("the answer is not read within %v: %w", longest, context.DeadlineExceeded)
		}
	}
	return err
}

package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// HoldConfig says how a member gives its rows. All fields have useful zero values, but for Kind.
type HoldConfig struct {
	// Kind says what the rows are, in 1 to 64 bytes; takers of another kind are refused. About is at most 2 KiB
	// that takers are told.
	Kind  string
	About []byte
	// HeldOut are rows for evaluation, the same for all who ask. Default: none.
	HeldOut Set
	// Policy says how the rows of an epoch are divided. The order of an epoch follows from Seed.
	Policy Policy
	Seed   uint64
	// Rate is what one partner gets in a second, in bytes. Default: DefaultRate.
	Rate int
	// Check looks at rows of other holders before they are passed on; an error names their holder. Default: no check.
	Check func(of Holding, rows int, data []byte) error
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Holder gives the rows of one member to others. Safe for concurrent use.
type Holder struct {
	set   Set
	with  HoldConfig
	self  transport.PeerID
	began time.Time
	life  uint64
	pool  *pool
	paces *lru.Cache[transport.PeerID, *rate.Limiter]
	most  int // rows of an answer, which so has about maxAnswer bytes

	mu     sync.Mutex
	ledger *handout.Ledger
	takers map[handout.Taker]int // streams of each
	runs   uint64                // that were handed out
}

// Hold has a node give the rows of a set to other members that ask, until Close, which comes before the node's. That is
// for the owner of the rows to say: who is let into the run can read them.
func Hold(n *peer.Node, set Set, with HoldConfig) (*Holder, error) {
	some, err := set.Append(nil, []int32{0})
	if err != nil {
		return nil, fmt.Errorf("looking at the rows that are to be given: %w", err)
	}
	ledger, err := handout.New(handout.Config{Rows: set.Rows(), Policy: with.Policy, Seed: with.Seed})
	if len(with.Kind) < 1 || len(with.Kind) > wire.MaxKind || len(with.About) > wire.MaxAbout || with.Rate < 0 {
		err = errors.Join(err, fmt.Errorf("a kind of %d bytes, %d bytes about it, and a rate of %d: want 1 to %d, at most %d, and none below 0", len(with.Kind), len(with.About), with.Rate, wire.MaxKind, wire.MaxAbout))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", peer.ErrConfig, err)
	}
	with.Rate = max(cmp.Or(with.Rate, DefaultRate), leastRate)
	if with.Log == nil {
		with.Log = zap.NewNop()
	}
	h := &Holder{set: set, with: with, self: n.Self(), began: time.Now(), life: rand.Uint64(), ledger: ledger, most: max(maxAnswer/max(len(some), 1), 1), takers: map[handout.Taker]int{}}
	h.paces, _ = lru.New[transport.PeerID, *rate.Limiter](maxPaces) // fails for sizes below one only
	h.pool = newPool(h.self, FromConfig{Kind: with.Kind, Seed: with.Seed, Bytes: wire.MaxRowsTotal, Check: with.Check, Log: with.Log})
	if h.pool.service, err = peer.Serve(n, transport.ProtocolRows, h.answer); err != nil {
		return nil, err
	}
	h.pool.service.Holds(uint64(set.Rows()))
	return h, nil
}

// Counts tells what became of the rows that were handed out. The rows of other holders, which are passed on, are in theirs.
func (h *Holder) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.Counts()
}

// Account is the name under which takers account for this holder's rows, should it die: see Batches.Counts.
func (h *Holder) Account() string { return account(h.self, h.life) }

// Close stops giving rows: what takers have not told the end of is lost. It waits for all streams, and is idempotent.
func (h *Holder) Close() error {
	h.pool.service.Holds(0)
	h.pool.service.Close()
	h.pool.close()
	return nil
}

// session is a stream of one that takes rows. One goroutine owns it.
type session struct {
	*Holder
	framed.Stream
	taker  handout.Taker
	out    map[uint64]*piece // answers of which the fate is not known
	buffer []byte
	pace   *rate.Limiter
}

// answer serves a stream until it ends.
func (h *Holder) answer(ctx context.Context, stream transport.Stream) {
	defer context.AfterFunc(ctx, stream.Reset)()
	s := &session{Holder: h, taker: handout.Taker{Name: string(stream.Remote())}, out: map[uint64]*piece{}}
	s.Begin(stream, stall)
	var (
		wants  Holding
		reason wire.Reason
		detail string
	)
	_, err := s.Receive(&wants)
	if err == nil {
		reason, detail = s.enter(wants)
	}
	if err == nil && reason == 0 {
		err = s.serve(ctx)
		s.leave()
	}
	if theirs, ok := wire.ReasonFor(err); ok || errors.Is(err, handout.ErrRun) {
		reason, detail = cmp.Or(theirs, wire.ReasonProtocol), err.Error()
	}
	if errors.Is(err, errTooMany) {
		reason, detail = wire.ReasonBusy, err.Error()
	}
	switch {
	case reason != 0:
		h.with.Log.Warn("refused one that asks for rows", zap.String("peer", string(stream.Remote())), zap.String("detail", detail), zap.String("remedy", reason.Remedy()))
		s.Refuse(0, reason, detail)
	case err != nil:
		stream.Reset()
		h.with.Log.Info("a stream of rows broke off: what its partner had is lost", zap.String("peer", string(stream.Remote())), zap.Error(err))
	default:
		s.Finish()
	}
}

// errTooMany: a taker asks for more than it tells the end of.
var errTooMany = fmt.Errorf("%d answers of which this taker has not told what became of them", maxOut)

// enter has a taker take part, or says why it does not. Its pace is that of all its streams.
func (s *session) enter(wants Holding) (wire.Reason, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wants.Kind != "" && wants.Kind != s.with.Kind {
		return wire.ReasonKind, fmt.Sprintf("rows here are %q", s.with.Kind)
	}
	if s.takers[s.taker] >= maxStreams {
		return wire.ReasonBusy, fmt.Sprintf("it has %d streams", maxStreams)
	}
	s.takers[s.taker]++
	s.ledger.Enter(s.taker)
	if s.pace, _ = s.paces.Get(s.Remote()); s.pace == nil {
		s.pace = rate.NewLimiter(rate.Limit(s.with.Rate), s.with.Rate)
		s.paces.Add(s.Remote(), s.pace)
	}
	return 0, ""
}

// leave takes leave of a stream: what is out on it is lost.
func (s *session) leave() {
	for number := range s.out {
		_ = s.settle(number, handout.Lost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takers[s.taker]--; s.takers[s.taker] == 0 {
		delete(s.takers, s.taker)
		s.ledger.Leave(s.taker)
	}
}

// serve answers questions, and takes what became of rows, until the taker closes.
func (s *session) serve(ctx context.Context) error {
	said := Holding{Kind: s.with.Kind, Rows: uint64(s.set.Rows()), Life: s.life, About: s.with.About}
	if s.with.HeldOut != nil {
		said.HeldOut = uint64(s.with.HeldOut.Rows())
	}
	if err := framed.Say(&s.Stream, 0, said); err != nil {
		return err
	}
	for {
		var (
			header, payload, err = s.Next()
			timeout              net.Error
			want                 wire.Want
			done                 wire.Done
		)
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil && s.pool.here(s.Remote()):
			continue // it trains, or is paused
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case header.Type == wire.TypeDone:
			if err = done.Decode(payload); err == nil {
				err = s.settle(header.Exchange, handout.Fate(done.Fate))
			}
		case header.Type == wire.TypeWant:
			if err = want.Decode(payload); err == nil {
				err = s.give(ctx, header.Exchange, want)
			}
		default:
			err = fmt.Errorf("%v: %w", header.Type, wire.ErrType)
		}
		if err != nil {
			return err
		}
	}
}

// give answers a question.
func (s *session) give(ctx context.Context, number uint64, want wire.Want) (err error) {
	var got piece
	want.Rows = min(want.Rows, uint32(s.most))
	switch {
	case want.HeldOut:
		got, err = s.heldOut(want)
	case s.out[number] != nil:
		return fmt.Errorf("question %d again: %w", number, wire.ErrMessage)
	case len(s.out) >= maxOut:
		return errTooMany
	case want.Hops == 1:
		got, err = s.draw(int(want.Rows))
	default:
		got, err = s.pass(ctx, want)
	}
	if got.rows > 0 && !want.HeldOut {
		s.out[number] = &got
	}
	m := wire.Rows{Rows: uint32(got.rows), Own: uint32(got.own), Total: uint32(len(got.data))}
	for at := 0; err == nil && (at == 0 || at < len(got.data)); at += wire.MaxRowsData {
		m.Offset, m.Data = uint32(at), got.data[at:min(at+wire.MaxRowsData, len(got.data))]
		if err = s.pace.WaitN(ctx, max(len(m.Data), 1)); err == nil {
			s.Frame = m.Append(wire.Reserve(s.Frame))
			err = s.Seal(wire.Header{Type: wire.TypeRows, Exchange: number})
		}
	}
	if got.data = nil; cap(s.buffer) > wire.MaxRowsData { // many streams may be open, and few of them send
		s.buffer = nil
	}
	return err
}

// draw hands out rows of this holder's own.
func (s *session) draw(rows int) (got piece, err error) {
	s.mu.Lock()
	s.runs++
	run := s.runs
	order := s.ledger.Take(s.taker, run, rows)
	s.mu.Unlock()
	if len(order) == 0 {
		return got, nil
	}
	got.rows, got.own = len(order), len(order)
	got.settle = func(fate handout.Fate) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.ledger.Settle(s.taker, run, fate, time.Since(s.began)) // who has settled it twice was refused before
	}
	if s.buffer, err = s.set.Append(s.buffer[:0], order); err != nil {
		got.settle(handout.Lost)
		return piece{}, err
	}
	got.data = s.buffer
	return got, nil
}

// pass draws from all holders, this one included, and hands on what comes.
func (s *session) pass(ctx context.Context, want wire.Want) (got piece, err error) {
	own := 0
	self := source{s.self, uint64(s.set.Rows()), func(_ context.Context, rows int) (piece, error) {
		got, err := s.draw(rows)
		got.data, own = slices.Clone(got.data), own+got.rows
		return got, err
	}}
	all, err := s.pool.draw(ctx, int(want.Rows), func() []source { return append(s.pool.sources(want.Hops-1), self) })
	got = joined(all)
	got.own = own
	return got, err
}

// heldOut gives rows that nobody trains on.
func (s *session) heldOut(want wire.Want) (got piece, err error) {
	if set := s.with.HeldOut; set != nil && want.First < uint64(set.Rows()) {
		got.rows = int(min(uint64(want.Rows), uint64(set.Rows())-want.First))
		order := make([]int32, got.rows)
		for i := range order {
			order[i] = int32(want.First) + int32(i)
		}
		got.data, err = set.Append(nil, order)
	}
	return got, err
}

// settle takes what became of an answer.
func (s *session) settle(number uint64, fate handout.Fate) error {
	got := s.out[number]
	if got == nil {
		return fmt.Errorf("answer %d: %w", number, handout.ErrRun)
	}
	delete(s.out, number)
	got.settle(fate)
	return nil
}

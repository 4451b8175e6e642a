package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// FromConfig says how a member takes rows of others. Batch is required.
type FromConfig struct {
	// Batch is the number of rows in a batch, 1 to MaxBatch.
	Batch int
	// Kind is that of the rows: see HoldConfig. Default: that of the first holder that answers.
	Kind string
	// Hops is 1 to draw from holders alone, and more to have them draw from each other first, so that a batch mixes the
	// rows of all although this member asks only a few: at most MaxHops. Default: 1.
	Hops int
	// Holders is how many holders this member asks, by Seed. Default: all.
	Holders int
	// Ahead is how many batches are ready or on their way, 1 to 64, and Bytes bounds their bytes. An answer with more
	// bytes is refused. Default: 8 batches, 16 MiB.
	Ahead, Bytes int
	// Seed decides from which holder each row is drawn.
	Seed uint64
	// Check looks at rows as they come: their shape, their values. An error names their holder, of whom nothing is taken
	// for a minute; the rows are drawn again. It may be called by several goroutines at once. Default: no check.
	Check func(of Holding, rows int, data []byte) error
	// Wait is how long Next waits while no holder gives rows. Default: 1 minute.
	Wait time.Duration
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Batch is rows to train on.
type Batch struct {
	// Rows is how many there are, and Data their encodings, joined: the caller's until Done or the next Next.
	Rows int
	Data []byte
}

// Batches are batches of rows that other members hold, drawn ahead of need. Next and Done belong to one goroutine.
type Batches struct {
	with    FromConfig
	pool    *pool
	ctx     context.Context // until Close
	end     context.CancelFunc
	asking  context.Context // until what is asked at Close has come, or the time of a stall
	stop    context.CancelFunc
	tasks   tasks.Group
	begin   sync.Once
	closed  chan struct{}
	room    chan struct{}   // a token for each batch that may be drawn
	ready   chan chan drawn // in the order in which they were begun
	waiting chan drawn      // that Next has given up waiting for
	current *piece
}

// drawn is a batch, or why there is none.
type drawn struct {
	piece
	err error
}

// From has a node take batches of rows that other members hold, until Close, which comes before the node's.
func From(n *peer.Node, with FromConfig) (*Batches, error) {
	with.Hops, with.Ahead, with.Bytes, with.Wait = cmp.Or(with.Hops, 1), cmp.Or(with.Ahead, 8), cmp.Or(with.Bytes, 16<<20), cmp.Or(with.Wait, time.Minute)
	if with.Batch < 1 || with.Batch > MaxBatch || with.Hops < 1 || with.Hops > MaxHops || with.Holders < 0 || with.Ahead < 1 || with.Ahead > mostAhead || with.Bytes < 1 || with.Wait < 0 || len(with.Kind) > wire.MaxKind {
		return nil, fmt.Errorf("%w: batches of %d rows of a kind of %d bytes, by %d hops, from %d holders, %d ahead in %d bytes, waiting %s: want 1 to %d rows, at most %d bytes, 1 to %d hops, 1 to %d ahead",
			peer.ErrConfig, with.Batch, len(with.Kind), with.Hops, with.Holders, with.Ahead, with.Bytes, with.Wait, MaxBatch, wire.MaxKind, MaxHops, mostAhead)
	}
	if with.Log == nil {
		with.Log = zap.NewNop()
	}
	b := &Batches{with: with, pool: newPool(n.Self(), with), closed: make(chan struct{}), room: make(chan struct{}, with.Ahead), ready: make(chan chan drawn, with.Ahead)}
	var err error
	if b.pool.service, err = peer.Serve(n, transport.ProtocolRows, nil); err != nil {
		return nil, err
	}
	b.asking, b.stop = context.WithCancel(context.Background())
	b.ctx, b.end = context.WithCancel(b.asking)
	return b, nil
}

// Next gives the next batch, and tells that the one before was trained on. It draws ahead from the first call on. It fails
// with ErrNoHolder once no holder has given rows for the time of Wait, and tells what was wrong with the last one.
func (b *Batches) Next(ctx context.Context) (Batch, error) {
	if b.Done(); b.ctx.Err() != nil {
		return Batch{}, peer.ErrClosed
	}
	b.begin.Do(func() {
		b.room <- struct{}{}
		b.tasks.Spawn(b.produce)
	})
	if b.waiting == nil {
		select {
		case b.waiting = <-b.ready:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
	select {
	case got := <-b.waiting:
		b.waiting = nil
		b.room <- struct{}{} // never waits: there are no more tokens than places
		if got.err != nil {
			return Batch{}, got.err
		}
		b.current = &got.piece
		return Batch{Rows: got.rows, Data: got.data}, nil
	case <-ctx.Done():
		return Batch{}, ctx.Err()
	}
}

// Done tells that the last batch was trained on, if Next is not called again.
func (b *Batches) Done() {
	if b.current != nil {
		b.current.settle(handout.Trained)
		b.current = nil
	}
}

// produce draws batches ahead, several at once. The first shows how many of them there is room for.
func (b *Batches) produce() {
	for first := true; ; first = false {
		select {
		case <-b.room:
		case <-b.ctx.Done():
			return
		}
		slot := make(chan drawn, 1)
		b.ready <- slot // never waits
		draw := func() int {
			p, err := b.draw()
			size := len(p.data)
			slot <- drawn{p, err}
			return size
		}
		if !first {
			if !b.tasks.Spawn(func() { draw() }) {
				slot <- drawn{err: peer.ErrClosed}
			}
			continue
		}
		for range min(b.with.Ahead, b.with.Bytes/max(draw(), 1)) - 1 {
			b.room <- struct{}{}
		}
	}
}

// draw draws a batch. It waits where there are no rows.
func (b *Batches) draw() (piece, error) {
	var pieces []piece
	for left, since := b.with.Batch, time.Now(); ; {
		got, err := b.pool.draw(b.asking, left, func() []source { return b.pool.sources(uint8(b.with.Hops)) })
		for _, p := range got {
			left, since = left-p.rows, time.Now()
		}
		if pieces = append(pieces, got...); left == 0 {
			return joined(pieces), nil
		}
		if b.ctx.Err() != nil {
			err = peer.ErrClosed
		} else if time.Since(since) < b.with.Wait {
			select {
			case <-time.After(again):
				continue
			case <-b.ctx.Done():
				err = peer.ErrClosed
			}
		}
		joined(pieces).settle(handout.Returned)
		b.pool.mu.Lock()
		defer b.pool.mu.Unlock()
		return piece{}, fmt.Errorf("drawing %d rows: %w", b.with.Batch, errors.Join(cmp.Or(err, ErrNoHolder), b.pool.fault))
	}
}

// Close gives back what nobody has trained on, and waits for all that is on its way, and until the holders know. The batch
// that was not Done is lost. It is idempotent, and comes after the last Next.
func (b *Batches) Close() error {
	b.begin.Do(func() {})
	if b.ctx.Err() != nil {
		<-b.closed
		return nil
	}
	b.end()
	timer := time.AfterFunc(stall, b.stop)
	b.tasks.End()
	timer.Stop()
	b.stop()
	if b.current != nil {
		b.current.settle(handout.Lost)
		b.current = nil
	}
	if b.waiting != nil {
		b.ready <- b.waiting
	}
	close(b.ready)
	for slot := range b.ready {
		if got := <-slot; got.err == nil {
			got.settle(handout.Returned)
		}
	}
	b.pool.close()
	b.pool.service.Close()
	close(b.closed)
	return nil
}

// Counts tells what became of all rows that came, and by holder (see Holder.Account) of its own: an account of a holder
// that has died. While it lives its own counts are better: they know of rows that were lost on their way.
func (b *Batches) Counts() (all Counts, by map[string]Counts) {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.pool.all, maps.Clone(b.pool.taken)
}

// HeldOut gives all rows of a holder that are for evaluation, at most so many bytes, and what it says of its rows. It waits
// for a holder until ctx ends. Rows and bytes are 0 where the holder has none.
func (b *Batches) HeldOut(ctx context.Context, most int) (of Holding, rows int, data []byte, err error) {
	for ctx.Err() == nil {
		for _, s := range b.pool.sources(1) {
			if of, rows, data, err = b.heldOut(ctx, s.holder, most); err == nil || !errors.As(err, new(*Fault)) {
				return of, rows, data, err
			}
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	return of, 0, nil, fmt.Errorf("waiting for a holder of rows: %w", errors.Join(ctx.Err(), err))
}

func (b *Batches) heldOut(ctx context.Context, holder transport.PeerID, most int) (of Holding, rows int, data []byte, err error) {
	for {
		got, said, err := b.pool.ask(ctx, holder, wire.Want{Rows: MaxBatch, Hops: 1, HeldOut: true, First: uint64(rows)})
		if of = said; err != nil || got.rows == 0 {
			return of, rows, data, err
		}
		if rows, data = rows+got.rows, append(data, got.data...); len(data) > most {
			return of, 0, nil, fmt.Errorf("more than %d bytes of rows for evaluation at %s", most, holder)
		}
	}
}

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

	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// FromConfig says how a member takes rows of others. Batch is required.
type FromConfig struct {
	// Batch is the number of rows in a batch, 1 to MaxBatch.
	Batch int
	// Hops is 1 to draw from all holders, and more to ask only one, by Seed, and have it draw from others first, so that a batch
	// mixes the rows of all: at most MaxHops. Default: 1.
	Hops int
	// Bytes bounds an answer: one with more bytes is refused. Up to 16 batches are asked for at once, and while those are
	// trained on, as many are ready and as many on their way, if all these have less than Bytes. Default: 16 MiB.
	Bytes int
	// Seed decides from which holder each row is drawn.
	Seed uint64
	// Check looks at rows before they are in a batch; those that it refuses are drawn again. Default: no check.
	Check Check
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Batch is rows to train on.
type Batch struct {
	// Rows is how many there are, and Data their encodings, joined: the caller's until the next Next.
	Rows int
	Data []byte
}

// Batches are batches of rows that other members hold, drawn ahead of need. Next and Done belong to one goroutine.
type Batches struct {
	with     FromConfig
	pool     *pool
	asking   context.Context // until what is asked at Close has come
	stop     context.CancelFunc
	ending   chan struct{} // closed by Close
	producer tasks.Group
	begin    sync.Once
	close    sync.Once
	ready    chan answer
	answer          // that batches are taken of
	given    int    // of its batches
	done     int    // of those
	at       uint32 // where the data of the next begin
}

// From has a node take batches of rows that other members hold, until Close, which comes before the node's.
func From(n *peer.Node, with FromConfig) (*Batches, error) {
	with.Hops, with.Bytes = cmp.Or(with.Hops, 1), cmp.Or(with.Bytes, 16<<20)
	if with.Batch < 1 || with.Batch > MaxBatch || with.Hops < 1 || with.Hops > MaxHops || with.Bytes < 1 {
		return nil, fmt.Errorf("%w: batches of %d rows by %d hops, in %d bytes: want 1 to %d rows and 1 to %d hops", peer.ErrConfig, with.Batch, with.Hops, with.Bytes, MaxBatch, MaxHops)
	}
	b := &Batches{with: with, pool: newPool(n.Self(), with), ending: make(chan struct{}), ready: make(chan answer, 1)}
	var err error
	if b.pool.service, err = peer.Serve(n, transport.ProtocolRows, nil); err != nil {
		return nil, err
	}
	b.pool.service.Count(false, func() Counts { all, _ := b.Counts(); return all })
	b.asking, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// Next gives the next batch, and tells that the one before was trained on. It draws ahead from the first call on, and waits for rows
// until ctx ends; the error names then the last holder with which something was wrong, as a *Fault.
func (b *Batches) Next(ctx context.Context) (Batch, error) {
	select {
	case <-b.ending:
		return Batch{}, peer.ErrClosed
	default:
		b.Done()
	}
	b.begin.Do(func() { b.producer.Spawn(b.produce) })
	if b.given == len(b.rows) {
		select {
		case got := <-b.ready:
			b.pool.buffers.Put(b.data)
			b.answer, b.given, b.done, b.at = got, 0, 0, 0
		case <-ctx.Done():
			return Batch{}, b.waited(ctx)
		}
	}
	rows, begin := int(b.rows[b.given]), b.at
	b.at += b.sizes[b.given]
	b.given++
	return Batch{rows, b.data[begin:b.at:b.at]}, nil
}

// waited is the error of who has waited for rows until ctx ended.
func (b *Batches) waited(ctx context.Context) error {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return fmt.Errorf("waiting for members that hold rows: %w", errors.Join(context.Cause(ctx), b.pool.fault))
}

// Done tells that the last batch was trained on, if Next is not called again.
func (b *Batches) Done() {
	if b.done < b.given {
		if b.done = b.given; b.done == len(b.rows) {
			b.settle(b.done, 0)
		}
	}
}

// produce draws batches ahead. The first shows how many of them there is room for.
func (b *Batches) produce() {
	for batches := 1; ; {
		got, ok := b.draw(batches)
		if !ok {
			return
		}
		batches = max(1, min(ahead, b.with.Bytes/3/max(len(got.data)/len(got.rows), 1)))
		select {
		case b.ready <- got:
		case <-b.ending:
			got.settle(0, 0)
			return
		}
	}
}

// draw draws batches, and waits until there is one, or until Close.
func (b *Batches) draw(batches int) (got answer, ok bool) {
	need := make([]uint32, batches)
	for i := range need {
		need[i] = uint32(b.with.Batch)
	}
	for all := []answer(nil); ; {
		all = append(all, b.pool.draw(b.asking, need, func() []source { return b.pool.sources(uint8(b.with.Hops)) })...)
		whole := 0
		for whole < batches && need[whole] == 0 {
			whole++
		}
		if whole > 0 { // what there is of others is given back, and drawn again
			got = joined(batches, all)
			got.rows, got.sizes = got.rows[:whole], got.sizes[:whole]
			return got, true
		}
		select {
		case <-time.After(again):
		case <-b.ending:
			joined(batches, all).settle(0, 0)
			return got, false
		}
	}
}

// Close gives back what nobody has trained on, and waits for all that is on its way, and until the holders know. The batch
// that was not Done is lost. It is idempotent, and comes after the last Next.
func (b *Batches) Close() error {
	b.close.Do(func() {
		defer time.AfterFunc(lastAnswer, b.stop).Stop()
		close(b.ending)
		if b.done < len(b.rows) {
			b.settle(b.done, b.given-b.done)
		}
		b.producer.End()
		select {
		case got := <-b.ready:
			got.settle(0, 0)
		default:
		}
		b.pool.streams.End()
		b.stop()
		b.pool.service.Close()
	})
	return nil
}

// Counts tells what became of all rows that came, and by holder: an account of those of a holder that has died. While it lives its
// own counts are better: they know of rows that were lost on their way. What a holder passed on counts as its own here.
func (b *Batches) Counts() (all Counts, by map[transport.PeerID]Counts) {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	for _, n := range b.pool.taken {
		all.Add(n)
	}
	return all, maps.Clone(b.pool.taken)
}

// About gives what a holder tells of its rows, at most so many bytes. It waits for a holder until ctx ends.
func (b *Batches) About(ctx context.Context, most int) ([]byte, error) {
	for {
		for _, s := range b.pool.sources(1) {
			var all []byte
			got, err := answer{data: []byte{0}}, error(nil)
			for err == nil && len(got.data) > 0 && len(all) <= most {
				got, err = b.pool.ask(ctx, s.holder, wire.Want{First: uint64(len(all)), Rows: []uint32{1}})
				all = append(all, got.data...)
			}
			if len(all) > most {
				return nil, &Fault{s.holder, fmt.Errorf("more than %d bytes about its rows: %w", most, ErrAnswer)}
			}
			if err == nil {
				return all, nil
			}
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, b.waited(ctx)
		}
	}
}

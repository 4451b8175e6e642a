package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// Hops is from 1 to MaxHops. With 1, the member asks all holders. With more, it asks only one, chosen by Seed, which draws
	// rows from other holders first: so a batch mixes the rows of all. Default: 1.
	Hops int
	// Bytes bounds an answer with rows: a longer one is refused. A question asks for up to 16 batches. While these are trained on, as
	// many are ready and as many under way, as far as all of them fit into Bytes. Default: 16 MiB.
	Bytes int
	// Seed decides from which holder each row is drawn.
	Seed uint64
	// Check checks rows before they enter a batch. Rows that it refuses are drawn again. Default: no check.
	Check Check
	// Log receives messages for the operator. Default: nothing is logged.
	Log *zap.Logger
}

// Batch is rows to train on.
type Batch struct {
	// Rows is the number of rows, and Data their encodings, joined. The caller may use Data until it calls Next again.
	Rows int
	Data []byte
}

// Batches gives batches of rows that other members hold, and draws them in advance. One goroutine calls Next and Done.
type Batches struct {
	with     FromConfig
	pool     *pool
	asking   context.Context // ends when the questions that are open at Close are answered
	stop     context.CancelFunc
	ending   chan struct{} // closed by Close
	producer tasks.Group
	begin    sync.Once
	close    sync.Once
	ready    chan answer
	answer          // the one whose batches Next gives
	given    int    // batches of the answer that Next has given
	done     int    // of the given batches, those that were trained on
	at       uint32 // where the data of the next batch begins
}

// From lets a node take batches of rows that other members hold. Close the Batches before the node.
func From(n *peer.Node, with FromConfig) (*Batches, error) {
	with.Hops, with.Bytes = cmp.Or(with.Hops, 1), cmp.Or(with.Bytes, 16<<20)
	if with.Batch < 1 || with.Batch > MaxBatch || with.Hops < 1 || with.Hops > MaxHops || with.Bytes < 1 {
		return nil, fmt.Errorf("%w: batches of %d rows by %d hops, in %d bytes: want 1 to %d rows and 1 to %d hops", peer.ErrConfig, with.Batch, with.Hops, with.Bytes, MaxBatch, MaxHops)
	}
	b := &Batches{with: with, pool: newPool(n.Self(), with), ending: make(chan struct{}), ready: make(chan answer, 1)}
	if with.Hops > 1 {
		b.pool.few = 1
	}
	var err error
	if b.pool.service, err = peer.Serve(n, transport.ProtocolRows, nil); err != nil {
		return nil, err
	}
	b.asking, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// Next gives the next batch, and marks the previous one as trained on. From the first call on, batches are drawn in advance. Next
// waits for rows until ctx ends. Its error then holds, as a *Fault, the last fault of a holder.
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

// waited is the error of a call whose ctx ended while it waited for rows.
func (b *Batches) waited(ctx context.Context) error {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return fmt.Errorf("waiting for members that hold rows: %w", errors.Join(context.Cause(ctx), b.pool.fault))
}

// Done marks the last batch as trained on. It is needed only if Next is not called again.
func (b *Batches) Done() {
	if b.done < b.given {
		if b.done = b.given; b.done == len(b.rows) {
			b.settle(b.done, 0)
		}
	}
}

// produce draws batches in advance. The size of those drawn last decides how many fit into memory next.
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

// draw draws up to so many batches. It waits until at least one is complete, or until Close.
func (b *Batches) draw(batches int) (got answer, ok bool) {
	need := slices.Repeat([]uint32{uint32(b.with.Batch)}, batches)
	for all := []answer(nil); ; {
		all = append(all, b.pool.draw(b.asking, need, func() []source { return b.pool.sources(uint8(b.with.Hops)) })...)
		whole := 0
		for whole < batches && need[whole] == 0 {
			whole++
		}
		if whole > 0 { // the rows of incomplete batches are returned, and drawn again
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

// Close returns the rows of batches that Next has not given, and waits for answers under way and until the holders are told. A
// batch that was given but is not Done counts as lost. Close is idempotent, and comes after the last Next.
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

// Counts tells what became of the rows that arrived, in all and by holder. It serves for holders that have died. The counts of a
// living holder are better: they include rows lost on their way. Rows that a holder passed on count here as its own.
func (b *Batches) Counts() (all Counts, by map[transport.PeerID]Counts) {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	for _, n := range b.pool.taken {
		all.Add(Counts{}, n)
	}
	return all, maps.Clone(b.pool.taken)
}

// About asks a holder for its HoldConfig.About, at most so many bytes. It waits for a holder until ctx ends, or Close.
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
		case <-b.ending:
			return nil, peer.ErrClosed
		case <-ctx.Done():
			return nil, b.waited(ctx)
		}
	}
}

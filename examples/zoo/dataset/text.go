package dataset

import (
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bytes is the number of classes of a text: the values of a byte.
const Bytes = 256

// Bounds of a text.
const (
	// DefaultWindow is the default of Config.Window, MaxWindow its largest value.
	DefaultWindow = 128
	MaxWindow     = 1 << 13
	// maxText bounds the bytes of text that a peer reads.
	maxText = 1<<31 - 1
)

// corpus is the text of a Set, and its windows. A model takes the bytes of a window, and learns which byte follows
// each.
type corpus struct {
	bytes  []byte
	starts []int32 // of windows
	window int
}

// NewText makes a set of the consecutive windows of a text, each with the byte that follows it. The set keeps the
// bytes, which must not change any more.
func NewText(bytes []byte, window int) (*Set, error) {
	if window < 1 || window > MaxWindow {
		return nil, fmt.Errorf("%w: windows of %d bytes: want 1 to %d", ErrConfig, window, MaxWindow)
	}
	if len(bytes) <= window || len(bytes) > maxText {
		return nil, fmt.Errorf("dataset: %d bytes of text: want %d, for one window, to %d", len(bytes), window+1, maxText)
	}
	t := &corpus{bytes: bytes, window: window, starts: make([]int32, (len(bytes)-1)/window)}
	for i := range t.starts {
		t.starts[i] = int32(i * window)
	}
	return t.set(), nil
}

func (t *corpus) set() *Set {
	return &Set{text: t, shape: Shape{Height: 1, Width: t.window, Channels: 1}, inputs: t.window, classes: Bytes}
}

// subset is the text with some of its windows.
func (t *corpus) subset(indices []int32) *corpus {
	some := &corpus{bytes: t.bytes, window: t.window, starts: make([]int32, len(indices))}
	for i, at := range indices {
		some.starts[i] = t.starts[at]
	}
	return some
}

// all returns the bytes of all windows, one after the other.
func (t *corpus) all() []byte {
	bytes := make([]byte, 0, len(t.starts)*(t.window+1))
	for _, from := range t.starts {
		bytes = append(bytes, t.bytes[from:int(from)+t.window+1]...)
	}
	return bytes
}

// show writes the window that begins at byte from as the input of a model, and the expected outputs.
func (t *corpus) show(x tensor.Vector, labels []uint8, from int) {
	for i, b := range t.bytes[from : from+t.window] {
		x[i] = float32(b)
	}
	copy(labels, t.bytes[from+1:from+1+t.window])
}

// windows returns batches of windows at random places of a text; the seed decides which.
type windows struct {
	text  *corpus
	batch int
	rng   *rand.Rand
}

func newWindows(t *corpus, batch int, seed uint64) (*windows, error) {
	if batch < 1 || batch > len(t.starts) {
		return nil, &BatchError{Batch: batch, Have: len(t.starts)}
	}
	return &windows{text: t, batch: batch, rng: seeded.Rand(seed, seeded.Order, 0)}, nil
}

// Next implements Batches.
func (w *windows) Next(b *Batch) error {
	b.resize(w.batch, w.text.window, w.text.window)
	for i := range w.batch {
		w.text.show(b.row(i, w.text.window), b.labels(i), w.rng.IntN(len(w.text.bytes)-w.text.window))
	}
	return nil
}

// Close implements Batches.
func (w *windows) Close() error { return nil }

package dataset

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// Bounds of a stream's memory, in addition to Config.Memory.
const (
	// ShufflePictures and ShuffleBytes bound the buffer in which pictures are
	// shuffled, by number and by bytes.
	ShufflePictures = 4096
	ShuffleBytes    = 1 << 25
	// Ahead is the most batches that are ready, without the one being filled and
	// the one of the caller.
	Ahead = 2
)

// Stream reads batches from files. Each pass reads the files in another order, and
// shuffles their pictures in a buffer: each picture that enters replaces a random one,
// which is shown. Each pass shows every picture of the part exactly once, but for
// damaged ones. A batch may have the end of one pass and the start of the next. Files,
// seed and memory bounds decide all that is shown.
//
// One goroutine reads, decodes and varies pictures ahead of Next; Close ends it. If all
// pictures of the first pass fit into Config.Memory, they are kept: later passes read
// no files, and are in a completely random order.
type Stream struct {
	ready chan *Batch
	free  chan *Batch
	ctx   context.Context
	end   context.CancelCauseFunc // of ctx, with ErrClosed
	err   error                   // why ready was closed
}

// streamConfig is the configuration of a stream.
type streamConfig struct {
	index   *index
	part    []int32 // ascending
	shape   Shape
	levels  levels
	found   *findings
	batch   int
	seed    uint64
	augment Augment
	// memory bounds the bytes of pictures that are kept, shuffle the number of pictures
	// in the buffer.
	memory  int64
	shuffle int
}

func newStream(c streamConfig) *Stream {
	s := &Stream{ready: make(chan *Batch, Ahead), free: make(chan *Batch, Ahead+2)}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	for range Ahead + 1 {
		s.free <- new(Batch)
	}
	p := newProducer(c, s)
	go func() {
		s.err = p.run()
		close(s.ready)
	}()
	return s
}

// Next gives a batch that is ready, and waits for one if there is none. It allocates
// nothing. An error of reading is a *DataError; each later call returns it again.
func (s *Stream) Next(b *Batch) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	full, ok := <-s.ready
	if !ok {
		return s.err
	}
	*b, *full = *full, *b
	s.free <- full // never waits: the channel has room for all batches
	return nil
}

// Close ends the stream and waits for its goroutine.
func (s *Stream) Close() error {
	s.end(ErrClosed)
	for range s.ready { // the goroutine closes it when it ends
	}
	return nil
}

// producer fills the batches of a stream. One goroutine owns it.
type producer struct {
	streamConfig
	stream    *Stream
	rng       *rand.Rand
	developer *developer
	augmenter *augmenter

	current *Batch // the batch being filled; nil between two
	row     int

	buffer *album // pictures that wait to be shown
	most   int    // the most pictures in buffer
	kept   *album // pictures of the first pass, nil if they do not fit
	order  []int32
	shown  int // pictures shown in this pass
}

func newProducer(c streamConfig, s *Stream) *producer {
	size := c.shape.Values()
	p := &producer{
		streamConfig: c, stream: s, rng: seeded.Rand(c.seed, seeded.Stream, 0),
		developer: newDeveloper(c.index.source, c.shape), augmenter: newAugmenter(c.augment, c.shape, c.seed),
		most: min(max(1, min(c.shuffle, ShuffleBytes/size)), len(c.part)),
	}
	p.buffer = newAlbum(size, p.most)
	if int64(len(c.part))*int64(size) <= c.memory {
		p.kept = newAlbum(size, len(c.part))
	}
	return p
}

// run makes one pass after another until the stream is closed or fails.
func (p *producer) run() error {
	if err := p.read(); err != nil {
		return err
	}
	if p.kept == nil {
		for {
			if err := p.read(); err != nil {
				return err
			}
		}
	}
	p.buffer, p.order = nil, seeded.Identity(p.kept.len())
	for {
		seeded.Shuffle(p.rng, p.order)
		for _, i := range p.order {
			if err := p.show(p.kept, int(i)); err != nil {
				return err
			}
		}
	}
}

// read makes a pass over the files.
func (p *producer) read() error {
	p.shown = 0
	for _, f := range p.files() {
		err := p.index.each(p.stream.ctx, f, p.index.in(f, p.part), p.developer, p.found, func(label uint8, pixels []uint8) error {
			if p.kept != nil {
				p.kept.add(label, pixels)
			}
			return p.take(label, pixels)
		})
		if err != nil {
			return err
		}
	}
	for p.buffer.len() > 0 {
		i := p.rng.IntN(p.buffer.len())
		if err := p.show(p.buffer, i); err != nil {
			return err
		}
		p.buffer.remove(i)
	}
	if p.shown == 0 {
		return p.index.blameAll(fmt.Errorf("%w that can be decoded in this part%s", ErrEmpty, p.found.reasons()))
	}
	return nil
}

// files are the numbers of the files with records of the part, in the order of this pass.
func (p *producer) files() []int {
	var files []int
	for f := range p.index.source.files() {
		if len(p.index.in(f, p.part)) > 0 {
			files = append(files, f)
		}
	}
	p.rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	return files
}

// take puts a picture into the buffer. If the buffer is full, it first shows a
// random picture of it.
func (p *producer) take(label uint8, pixels []uint8) error {
	if p.buffer.len() < p.most {
		p.buffer.add(label, pixels)
		return nil
	}
	i := p.rng.IntN(p.most)
	if err := p.show(p.buffer, i); err != nil {
		return err
	}
	p.buffer.put(i, label, pixels)
	return nil
}

// show puts a picture into the current batch, and makes the batch ready when it is
// full. It waits until a batch is free, or the stream is closed.
func (p *producer) show(from *album, i int) error {
	if p.current == nil {
		select {
		case p.current = <-p.stream.free:
		case <-p.stream.ctx.Done():
			return ErrClosed
		}
		p.current.Resize(p.batch, from.size)
		p.row = 0
	}
	p.current.Labels[p.row] = from.labels[i]
	p.levels.apply(p.current.row(p.row, from.size), p.augmenter.vary(from.picture(i)))
	p.row++
	p.shown++
	if p.row < p.batch {
		return nil
	}
	select {
	case p.stream.ready <- p.current:
		p.current = nil
	case <-p.stream.ctx.Done():
		return ErrClosed
	}
	return nil
}

// album holds pictures of one size with their labels, at most as many as it was
// made for.
type album struct {
	size   int
	pixels []uint8
	labels []uint8
}

func newAlbum(size, most int) *album {
	return &album{size: size, pixels: make([]uint8, 0, size*most), labels: make([]uint8, 0, most)}
}

func (a *album) len() int              { return len(a.labels) }
func (a *album) picture(i int) []uint8 { return a.pixels[i*a.size : (i+1)*a.size] }

func (a *album) add(label uint8, pixels []uint8) {
	a.labels, a.pixels = append(a.labels, label), append(a.pixels, pixels...)
}

func (a *album) put(i int, label uint8, pixels []uint8) {
	a.labels[i] = label
	copy(a.picture(i), pixels)
}

// remove removes a picture; the last one takes its place.
func (a *album) remove(i int) {
	last := a.len() - 1
	a.put(i, a.labels[last], a.picture(last))
	a.labels, a.pixels = a.labels[:last], a.pixels[:last*a.size]
}

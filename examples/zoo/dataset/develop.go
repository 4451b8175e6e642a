package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// developer decodes the pictures of a source, all of one shape.
type developer struct {
	decoder decoder
	shape   Shape
	// pixels is the picture decoded last.
	pixels []uint8
}

func newDeveloper(s source, shape Shape) *developer {
	return &developer{decoder: s.newDecoder(), shape: shape, pixels: make([]uint8, shape.Values())}
}

// develop decodes a record of file f. One that cannot be decoded counts among the findings.
func (d *developer) develop(x *index, f int, number int32, rec *record, found *findings) error {
	resized, err := rec.resized, rec.fault
	if rec.pixels != nil {
		copy(d.pixels, rec.pixels)
	} else if err == nil {
		resized, err = d.decoder.decode(d.pixels, d.shape, rec.packed)
	}
	if err != nil {
		fault := &RecordError{Path: x.source.path(f), Key: rec.key, Err: err}
		found.skip(number, fault)
		return fault
	}
	if resized {
		found.resize(number)
	}
	return nil
}

// each decodes the records of file f with the given numbers, which ascend, and calls
// take for each. It skips records that cannot be decoded, and ends if take returns an
// error. Its error is that of take, the cause of ctx's end, or a *DataError.
func (x *index) each(ctx context.Context, f int, numbers []int32, d *developer, found *findings, take func(label uint8, pixels []uint8) error) error {
	reader, err := x.open(ctx, f, false)
	if err != nil {
		return x.blame(f, err)
	}
	defer reader.Close()
	var rec record
	for at := x.starts[f]; len(numbers) > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := x.next(f, reader, &rec)
		if _, damaged := errors.AsType[*RecordError](err); damaged {
			continue // readIndex has reported it
		}
		if err == io.EOF || err == nil && (at >= x.starts[f+1] || x.labels[at] != rec.label) {
			err = fmt.Errorf("%w since it was first read: leave files alone while they are in use", ErrChanged)
		}
		if err != nil {
			return x.blame(f, err)
		}
		number := at
		at++
		if number != numbers[0] {
			continue
		}
		numbers = numbers[1:]
		if d.develop(x, f, number, &rec, found) != nil {
			continue
		}
		if err := take(rec.label, d.pixels); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is each for records of all files. It is an error if none of them can be
// decoded.
func (x *index) eachOf(ctx context.Context, numbers []int32, d *developer, found *findings, take func(label uint8, pixels []uint8)) error {
	taken := false
	for f := range x.source.files() {
		err := x.each(ctx, f, x.in(f, numbers), d, found, func(label uint8, pixels []uint8) error {
			taken = true
			take(label, pixels)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !taken {
		return x.blameAll(fmt.Errorf("%w that can be decoded%s", ErrEmpty, found.reasons()))
	}
	return nil
}

// maxMeasured bounds the number of pictures over which a normalization is measured.
const maxMeasured = 1 << 16

// measure adds up the levels of at most so many pictures, evenly spread over all
// files.
func (x *index) measure(ctx context.Context, shape Shape, most int, found *findings) (*moments, error) {
	m, d := newMoments(shape.Channels), newDeveloper(x.source, shape)
	err := x.eachOf(ctx, x.spread(most), d, found, func(_ uint8, pixels []uint8) { m.add(pixels) })
	return m, err
}

// spread returns the numbers of at most so many records, evenly spread over all
// files.
func (x *index) spread(most int) (some []int32) {
	apart := (len(x.labels) + most - 1) / most
	for i := 0; i < len(x.labels); i += apart {
		some = append(some, int32(i))
	}
	return some
}

// maxHeldOut bounds the memory of a held-out set, in bytes.
const maxHeldOut = 1 << 29

// heldOut decodes every record into memory.
func (x *index) heldOut(ctx context.Context, classes int, norm []Normalization, found *findings) (*Set, error) {
	if size := x.shape.Values(); len(x.labels) > maxHeldOut/size {
		return nil, x.blameAll(fmt.Errorf("%w: %d held-out pictures of %d bytes, want at most %d bytes together: put fewer there", ErrTooLarge, len(x.labels), size, maxHeldOut))
	}
	return x.all(ctx, seeded.Identity(len(x.labels)), classes, norm, found)
}

// all decodes the records with the given numbers into memory.
func (x *index) all(ctx context.Context, numbers []int32, classes int, norm []Normalization, found *findings) (*Set, error) {
	pixels, labels := make([]uint8, 0, len(numbers)*x.shape.Values()), make([]uint8, 0, len(numbers))
	err := x.eachOf(ctx, numbers, newDeveloper(x.source, x.shape), found, func(label uint8, picture []uint8) {
		labels, pixels = append(labels, label), append(pixels, picture...)
	})
	if err != nil {
		return nil, err
	}
	return NewSet(pixels, labels, x.shape, classes, norm...)
}

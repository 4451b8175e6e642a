package dataset

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync/atomic"
)

// fakeSource has files of so many records each; a picture of two values is its
// number. Bad ones cannot be decoded.
type fakeSource struct {
	sizes []int
	bad   map[int]bool
	// fail is what the file of this number ends with, if it is not nil.
	fail   error
	failAt int
	failed *atomic.Bool // fail only when set
	// gate is waited for at record number gateAt; read is the last one that was read.
	gate   chan struct{}
	gateAt int
	read   atomic.Int64
}

func (s *fakeSource) files() int           { return len(s.sizes) }
func (s *fakeSource) path(i int) string    { return fmt.Sprint("file-", i) }
func (s *fakeSource) parts(i int) []string { return []string{s.path(i)} }
func (s *fakeSource) newDecoder() decoder  { return fakeDecoder{s} }

func (s *fakeSource) open(i int, labels bool) (recordReader, error) {
	first := 0
	for _, n := range s.sizes[:i] {
		first += n
	}
	return &fakeReader{source: s, file: i, at: first, end: first + s.sizes[i], labels: labels}, nil
}

type fakeReader struct {
	source        *fakeSource
	file, at, end int
	labels        bool
}

func (r *fakeReader) Close() error { return nil }

func (r *fakeReader) next(rec *record) error {
	if s := r.source; s.fail != nil && s.failAt == r.file && s.failed.Load() {
		return s.fail
	}
	if r.at == r.end {
		return io.EOF
	}
	if !r.labels && r.source.gate != nil {
		r.source.read.Store(int64(r.at))
		if r.at == r.source.gateAt {
			<-r.source.gate
		}
	}
	*rec = record{key: fmt.Sprint(r.at), label: uint8(r.at % 7), packed: []byte{uint8(r.at), uint8(r.at >> 8)}}
	r.at++
	return nil
}

type fakeDecoder struct{ source *fakeSource }

var fakeShape = Shape{1, 2, 1}

func (fakeDecoder) shape([]byte) (Shape, error) { return fakeShape, nil }

func (d fakeDecoder) decode(pixels []uint8, _ Shape, packed []byte) (resized bool, err error) {
	if d.source.bad[int(packed[0])+256*int(packed[1])] {
		return false, ErrPicture
	}
	copy(pixels, packed)
	return false, nil
}

// streamOf streams a part; what a model sees are the levels themselves.
func streamOf(t fataler, s source, part []int32, change func(*streamConfig)) *Stream {
	t.Helper()
	var found findings
	x, err := readIndex(context.Background(), Config{Dir: "dir"}, s, 7, &found)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := newLevels(1, []Normalization{{Scale: 1.0 / 255}})
	if err != nil {
		t.Fatal(err)
	}
	c := streamConfig{index: x, part: part, shape: fakeShape, levels: tables, found: &found, batch: 1, seed: 1, shuffle: ShufflePictures}
	if change != nil {
		change(&c)
	}
	return newStream(c)
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// numbers takes n pictures from a stream and closes it.
func numbers(t fataler, s *Stream, n int) []int {
	t.Helper()
	defer s.Close()
	var b Batch
	var all []int
	for len(all) < n {
		if err := s.Next(&b); err != nil {
			t.Fatal(err)
		}
		for i, label := range b.Labels {
			number := int(math.Round(float64(b.X[2*i]))) + 256*int(math.Round(float64(b.X[2*i+1])))
			if int(label) != number%7 {
				t.Fatal("picture", number, "has label", label)
			}
			all = append(all, number)
		}
	}
	return all[:n]
}

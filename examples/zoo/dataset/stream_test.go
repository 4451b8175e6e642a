package dataset

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// In each pass of all peers together every record comes exactly once, whatever the
// files, the rule of the parts, the buffer, and whether pictures are kept.
func TestStreamPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &fakeSource{sizes: rapid.SliceOfN(rapid.IntRange(1, 40), 1, 6).Draw(t, "sizes")}
		total := 0
		for _, n := range s.sizes {
			total += n
		}
		s.bad = map[int]bool{rapid.IntRange(0, 2*total).Draw(t, "bad"): true}
		shard := drawShard(t)
		most := min(total, 4)
		if rapid.Bool().Draw(t, "files") {
			shard, most = Shard{Files: true}, min(len(s.sizes), 4)
		}
		parts := rapid.IntRange(1, most).Draw(t, "parts")
		shuffle := rapid.IntRange(1, 50).Draw(t, "shuffle")
		memory := rapid.SampledFrom([]int64{1, 1 << 20}).Draw(t, "memory")
		x, err := readIndex(context.Background(), Config{Dir: "dir"}, s, 7, new(findings))
		if err != nil {
			t.Fatal(err)
		}
		var passes [3][]int
		for part := range parts {
			mine, err := shard.partOf(x, 5, part, parts)
			if err != nil {
				t.Fatal(err)
			}
			good := 0
			for _, i := range mine {
				if !s.bad[int(i)] {
					good++
				}
			}
			if good == 0 {
				return
			}
			batch := rapid.IntRange(1, 8).Draw(t, "batch")
			stream := streamOf(t, s, mine, func(c *streamConfig) { c.shuffle, c.memory, c.batch, c.seed = shuffle, memory, batch, uint64(part) })
			seen := numbers(t, stream, len(passes)*good)
			for p := range passes {
				passes[p] = append(passes[p], seen[p*good:(p+1)*good]...)
			}
		}
		var want []int
		for i := range total {
			if !s.bad[i] {
				want = append(want, i)
			}
		}
		for p, seen := range passes {
			slices.Sort(seen)
			if !slices.Equal(seen, want) {
				t.Fatalf("pass %d shows %v, want %v", p, seen, want)
			}
		}
	})
}

func TestStreamOrderIsItsSeed(t *testing.T) {
	s := &fakeSource{sizes: []int{300, 200, 500}}
	part := make([]int32, 1000)
	for i := range part {
		part[i] = int32(i)
	}
	for _, memory := range []int64{1, 1 << 20} {
		draw := func(seed uint64) []int {
			return numbers(t, streamOf(t, s, part, func(c *streamConfig) { c.seed, c.memory, c.shuffle, c.batch = seed, memory, 64, 10 }), 3000)
		}
		one, again, other := draw(1), draw(1), draw(2)
		if !slices.Equal(one, again) {
			t.Error("one seed gives two orders")
		}
		if slices.Equal(one, other) || slices.Equal(one[:1000], one[1000:2000]) || slices.Equal(one[1000:2000], one[2000:]) {
			t.Error("two seeds or two passes have one order")
		}
	}
}

// Within the reach of the buffer the order is random: neighbours in a file are not
// neighbours in the stream.
func TestStreamShuffles(t *testing.T) {
	s := &fakeSource{sizes: []int{5000}}
	part := make([]int32, 5000)
	for i := range part {
		part[i] = int32(i)
	}
	seen := numbers(t, streamOf(t, s, part, func(c *streamConfig) { c.memory, c.shuffle = 1, 1000 }), 5000)
	near, moved := 0, 0.0
	for i := 1; i < len(seen); i++ {
		if abs(seen[i]-seen[i-1]) < 10 {
			near++
		}
		moved += math.Abs(float64(seen[i] - i))
	}
	if near > 200 || moved/5000 < 400 {
		t.Errorf("%d near neighbours, moved by %.0f", near, moved/5000)
	}
}

// A stream that is closed while it has much to do ends at once, and for good.
func TestStreamCloses(t *testing.T) {
	s := &fakeSource{sizes: []int{20000, 20000}}
	part := make([]int32, 40000)
	for i := range part {
		part[i] = int32(i)
	}
	for _, batches := range []int{0, 1, 5} {
		stream := streamOf(t, s, part, func(c *streamConfig) { c.batch, c.shuffle = 16, 30000 })
		var b Batch
		for range batches {
			if err := stream.Next(&b); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
		select {
		case _, more := <-stream.ready:
			if more {
				t.Error("a batch after Close")
			}
		default:
			t.Error("Close has not waited")
		}
		if err := stream.Next(&b); err != ErrClosed {
			t.Errorf("after %d batches and Close: %v", batches, err)
		}
	}
}

// Closing does not wait for a buffer to fill, or for the end of a file.
func TestStreamClosesWhileReading(t *testing.T) {
	s := &fakeSource{sizes: []int{20000}, gate: make(chan struct{}), gateAt: 100}
	part := make([]int32, 20000)
	for i := range part {
		part[i] = int32(i)
	}
	stream := streamOf(t, s, part, func(c *streamConfig) { c.shuffle = 20000 })
	closed := make(chan error)
	go func() { closed <- stream.Close() }()
	<-stream.ctx.Done()
	close(s.gate)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if read := s.read.Load(); read > 101 {
		t.Errorf("read on to record %d", read)
	}
}

// Next waits in one goroutine while another closes.
func TestStreamClosesUnderNext(t *testing.T) {
	s := &fakeSource{sizes: []int{100}}
	stream := streamOf(t, s, []int32{1, 2, 3}, nil)
	ended := make(chan error)
	go func() {
		var b Batch
		for {
			if err := stream.Next(&b); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != ErrClosed {
		t.Errorf("Next ended with %v", err)
	}
}

// An error in the middle comes after the batches before it, and stays; nothing is
// left running.
func TestStreamFails(t *testing.T) {
	var now atomic.Bool
	s := &fakeSource{sizes: []int{10, 10, 10}, fail: errors.New("the disk is gone"), failAt: 1, failed: &now}
	part := []int32{2, 5, 12, 14, 25}
	stream := streamOf(t, s, part, func(c *streamConfig) { c.memory = 1 })
	var b Batch
	if err := stream.Next(&b); err != nil {
		t.Fatal(err)
	}
	now.Store(true)
	var err error
	for range 100 {
		if err = stream.Next(&b); err != nil {
			break
		}
	}
	var wrong *DataError
	if !errors.As(err, &wrong) || !errors.Is(err, s.fail) || wrong.Path != "file-1" {
		t.Errorf("failed with %v", err)
	}
	if again := stream.Next(&b); again != err {
		t.Errorf("then with %v", again)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

// A damaged picture is counted once, in however many passes it is read. A part with
// only damaged pictures is an error.
func TestStreamSkips(t *testing.T) {
	s := &fakeSource{sizes: []int{10}, bad: map[int]bool{3: true, 4: true}}
	var found *findings
	stream := streamOf(t, s, []int32{1, 3, 4, 8}, func(c *streamConfig) { c.memory, found = 1, c.found })
	for _, number := range numbers(t, stream, 20) {
		if number != 1 && number != 8 {
			t.Fatalf("picture %d", number)
		}
	}
	total, named := found.after(0)
	if total != 2 || len(named) != 2 || named[0].Key != "3" || named[1].Key != "4" || !errors.Is(named[0], ErrPicture) {
		t.Errorf("%d skipped: %v", total, named)
	}
	if _, named := found.after(1); len(named) != 1 {
		t.Errorf("after the first: %v", named)
	}
	stream = streamOf(t, s, []int32{3, 4}, nil)
	defer stream.Close()
	if err := stream.Next(new(Batch)); !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), "record 4: bad picture") {
		t.Errorf("nothing but damaged pictures: %v", err)
	}
}

// A file whose records have changed since it was indexed is not read further.
func TestStreamNoticesChanges(t *testing.T) {
	s := &fakeSource{sizes: []int{10, 10}}
	for name, changed := range map[string]*fakeSource{
		"fewer records": {sizes: []int{5, 15}},
		"other labels":  {sizes: []int{11, 9}},
	} {
		stream := streamOf(t, s, []int32{9, 15}, func(c *streamConfig) { c.index.source = changed })
		defer stream.Close()
		var err error
		for range 100 {
			if err = stream.Next(new(Batch)); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

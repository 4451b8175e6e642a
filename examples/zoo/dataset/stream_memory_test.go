package dataset

import (
	"runtime"
	"testing"
)

// Once files are open and batches have their size, neither Next nor its goroutine
// allocates. A stream keeps only its buffers in memory: here a tenth of 24 MB of
// pictures.
func TestStreamMemory(t *testing.T) {
	const records, shuffle, batch = 4000, 300, 32
	dir := write(t, map[string][]byte{"data_batch_1.bin": make([]byte, records*cifarRecord), "data_batch_2.bin": make([]byte, records*cifarRecord), "test_batch.bin": cifarBatch(0, 1)})
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	data.stream.shuffle = shuffle
	var before, during, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stream, err := data.Batches(batch, 1, Augment{Flip: true, Crop: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var b Batch
	next := func(n int) {
		for range n {
			if err := stream.Next(&b); err != nil {
				t.Fatal(err)
			}
		}
	}
	next(20)
	runtime.GC()
	runtime.ReadMemStats(&during)
	next(2 * data.Len() / batch)
	runtime.ReadMemStats(&after)
	const bound = (shuffle + batch*4*(Ahead+2)) * 3072 * 5 / 4
	if held := int(during.HeapAlloc) - int(before.HeapAlloc); held > bound || held < bound/4 {
		t.Errorf("%d bytes held, want about %d", held, bound)
	}
	// Two passes open four files, with their buffers.
	if made := after.TotalAlloc - during.TotalAlloc; made > 6*(1<<16+cifarRecord)+1<<16 {
		t.Errorf("two passes allocate %d bytes", made)
	}
}

// Kept pictures are shown without any allocation at all.
func TestKeptPicturesAllocateNothing(t *testing.T) {
	dir := write(t, map[string][]byte{"data_batch_1.bin": cifarBatch(0, 50), "test_batch.bin": cifarBatch(0, 1)})
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := data.Batches(25, 1, Augment{Flip: true, Crop: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var b Batch
	next := func() {
		if err := stream.Next(&b); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		next()
	}
	if n := testing.AllocsPerRun(100, next); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

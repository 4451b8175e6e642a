package bridge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/tensor"
)

// memfd is a memory as a trainer on Linux makes it.
func memfd(t testing.TB, values, seals int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("values", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "values")
	if err := file.Truncate(int64(tensor.ValueSize * values)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return file
}

const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// TestASealedMemoryIsMapped: the two share pages; any other memory is read and written, with the
// same values in the end.
func TestASealedMemoryIsMapped(t *testing.T) {
	const values = 100_000
	for name, seals := range map[string]int{"sealed": sealed, "not sealed": unix.F_SEAL_GROW} {
		t.Run(name, func(t *testing.T) {
			file := memfd(t, values, seals)
			d := alone().with(t, "only", file, counting(values))
			d.hello("f32", "")
			if got, want := mappings(t, file), seals&unix.F_SEAL_SHRINK != 0; got != want {
				t.Errorf("mapped: %v", got)
			}
			want := d.read()
			for i := range want {
				want[i] += 8
			}
			d.write(want)
			if a := d.say(`{"op":"commit","steps":1}`); !a.Added || !slices.Equal(d.read(), want) {
				t.Errorf("commit: %+v, or other values", a)
			}
			if a := d.say(`{"op":"leave"}`); !a.OK || <-d.ended != nil || mappings(t, file) {
				t.Errorf("leave: %+v, or the memory is still mapped", a)
			}
		})
	}
}

// mappings tells whether this process has the file mapped.
func mappings(t *testing.T, file *os.File) bool {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("no /proc/self/maps here")
	}
	return slices.ContainsFunc(strings.Split(string(maps), "\n"), func(line string) bool {
		var from, inode string
		if n, _ := fmt.Sscanf(line, "%s %s %s %s %s", &from, new(string), new(string), new(string), &inode); n < 5 {
			return false
		}
		return inode == fmt.Sprint(stat.Ino)
	})
}

// TestATrainerThatWritesWhileACommitRuns gets into the model what it wrote at one moment or
// another, or a refusal: never NaN.
func TestATrainerThatWritesWhileACommitRuns(t *testing.T) {
	const values = 200_000
	file := memfd(t, values, sealed)
	d := alone().with(t, "only", file, make(tensor.Vector, values))
	content, err := unix.Mmap(int(file.Fd()), 0, tensor.ValueSize*values, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(content)
	d.hello("bf16", "")
	var stop atomic.Bool
	var writing sync.WaitGroup
	writing.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for !stop.Load() {
			for range 50_000 { // bytes of any float32, NaN among them
				content[random.IntN(len(content))] = byte(random.Uint32())
			}
			clear(content)
			time.Sleep(time.Millisecond)
		}
	})
	added := 0
	model := make(tensor.Vector, values)
	for range 100 {
		a := d.say(`{"op":"commit","steps":1}`)
		if code := a.code(); code != "" && code != bridge.CodeNotFinite {
			t.Fatalf("a commit: %+v", a.Error)
		}
		if a.Added {
			added++
		}
		if _, err := d.peer.Snapshot(model, 0); err != nil || !tensor.Finite(model) {
			t.Fatalf("after %d commits the model is not finite: %v", added, err)
		}
	}
	stop.Store(true)
	writing.Wait()
	t.Logf("%d of 100 commits were added", added)
}

// BenchmarkCommit is a commit of 25 million values beside one pass of copying as many bytes: those
// of the memory, the base and the replica.
func BenchmarkCommit(b *testing.B) {
	const values = 25_000_000
	file := memfd(b, values, sealed)
	defer file.Close()
	w := alone()
	w.configure = func(c *peer.Config) { c.Training.Exchange.Pace.Every, c.Training.Exchange.SliceLen = 1, 0 }
	d := w.with(b, "only", file, make(tensor.Vector, values))
	d.hello("f32", "")
	vectors := make([]tensor.Vector, 6)
	for i := range vectors {
		vectors[i] = make(tensor.Vector, values)
		for k := range vectors[i] {
			vectors[i][k] = 1 // memory that is there
		}
	}
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(3 * tensor.ValueSize * values)
		for b.Loop() {
			for i := range 3 {
				copy(vectors[i], vectors[3+i])
			}
		}
	})
	b.Run("commit", func(b *testing.B) {
		b.SetBytes(3 * tensor.ValueSize * values)
		b.ReportAllocs() // of the line and its answer: none by value
		for b.Loop() {
			if a := d.say(`{"op":"commit","steps":8}`); !a.Added {
				b.Fatalf("%+v", a)
			}
		}
	})
}

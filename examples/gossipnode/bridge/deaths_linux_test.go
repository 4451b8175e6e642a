package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// contents are all bytes of a memory.
func contents(t *testing.T, file *os.File) []byte {
	t.Helper()
	all, err := io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// put writes a value of a memory.
func put(t *testing.T, file *os.File, at int, value float32) {
	t.Helper()
	if _, err := file.WriteAt(littleEndian(value), int64(4*at)); err != nil {
		t.Fatal(err)
	}
}

func littleEndian(value float32) []byte {
	bits := math.Float32bits(value)
	return []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)}
}

// TestKilledTrainer: the process that holds the trainer's end of the connection is killed. The bridge
// ends with exit code 1, and leaves the memory as that had it.
func TestKilledTrainer(t *testing.T) {
	t.Parallel()
	file := memory(t)
	d := spawn(t, file)
	if a := d.say("%s", hello("")); !a.OK {
		t.Fatalf("%+v", a)
	}
	if a := d.say(`{"op":"commit","steps":2}`); a.Steps != 2 {
		t.Fatalf("%+v", a)
	}
	put(t, file, 3, 7) // a step that is not committed
	before := contents(t, file)

	end, err := d.to.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), "sleep", "600") // stands for the trainer: its death alone closes the connection
	holder.ExtraFiles = []*os.File{end}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	d.to.Close()
	if err := d.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bridge has ended before its trainer: %v", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
	d.exits(cli.ExitFailed)
	if !bytes.Equal(contents(t, file), before) {
		t.Error("the bridge has written to the memory of a trainer that had died")
	}
}

// TestKilledBridge: the bridge is killed. The memory is as the trainer had it, and another bridge goes
// on with it, as the same member with the steps that were counted.
func TestKilledBridge(t *testing.T) {
	t.Parallel()
	file := memory(t)
	d := spawn(t, file)
	if a := d.say("%s", hello("")); !a.OK {
		t.Fatalf("%+v", a)
	}
	put(t, file, 0, 5)
	if a := d.say(`{"op":"commit","steps":4}`); a.Steps != 4 {
		t.Fatalf("%+v", a)
	}
	resume := d.resume()
	put(t, file, 1, 6) // a step that is not committed
	before := contents(t, file)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // killed
	if d.answers.Scan() {
		t.Errorf("a dead bridge says %s", d.answers.Text())
	}
	if !bytes.Equal(contents(t, file), before) {
		t.Error("the memory has changed with the bridge's death")
	}

	next := spawn(t, file)
	if a := next.say("%s", hello(`,"resume":`+string(resume))); !a.OK || a.Steps != 4 {
		t.Fatalf("another bridge: %+v", a)
	}
	if !bytes.Equal(contents(t, file), before) {
		t.Error("another bridge does not go on from the trainer's values")
	}
	if a := next.say(`{"op":"commit","steps":1}`); a.Steps != 5 {
		t.Errorf("%+v", a)
	}
	next.say(`{"op":"leave"}`)
	next.exits(cli.ExitDone)
}

// TestKilledFounder: the bridge of a founder is killed once somebody has joined. The next, at another
// address and told to join nobody, finds the flock by what the last answer of the first said.
func TestKilledFounder(t *testing.T) {
	t.Parallel()
	file := memory(t)
	founder := spawn(t, file)
	began := founder.say("%s", hello(""))
	guest := spawn(t, memory(t))
	if a := guest.say("%s", hello(fmt.Sprintf(`,"join":[%q]`, began.Addresses[0]))); !a.OK {
		t.Fatalf("%+v", a)
	}
	clitest.Eventually(t, "the two to meet", func() bool { return founder.say(`{"op":"commit","steps":1}`).Members == 2 })
	resume := founder.resume()
	if err := founder.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = founder.cmd.Wait() // killed

	next := spawn(t, file)
	if a := next.say("%s", hello(`,"resume":`+string(resume))); !a.OK || a.Addresses[0] == began.Addresses[0] {
		t.Fatalf("another bridge: %+v", a)
	}
	clitest.Eventually(t, "it to find the flock", func() bool { return next.say(`{"op":"commit"}`).Members == 2 })
	for _, d := range []*client{guest, next} {
		d.say(`{"op":"leave"}`)
		d.exits(cli.ExitDone)
	}
}

// resume is what the last answer gives to the next bridge.
func (d *client) resume() json.RawMessage {
	d.t.Helper()
	var last struct{ Resume json.RawMessage }
	if err := json.Unmarshal(d.answers.Bytes(), &last); err != nil || last.Resume == nil {
		d.t.Fatalf("no resume in %s: %v", d.answers.Bytes(), err)
	}
	return last.Resume
}

// TestNothingIsKeptOfTrainers: a bridge that has served several has the descriptors of one that has
// served one, and no memory of theirs.
func TestNothingIsKeptOfTrainers(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	bridge := listening(t, path)
	held := func() (descriptors int, mapped bool) {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", bridge.Process.Pid))
		maps, unread := os.ReadFile(fmt.Sprintf("/proc/%d/maps", bridge.Process.Pid))
		if err := errors.Join(err, unread); err != nil {
			t.Fatal(err)
		}
		return len(files), bytes.Contains(maps, []byte("memfd:trainers"))
	}
	serve := func(end string) {
		clitest.Eventually(t, "a place", func() bool {
			d := attach(t, path, sealed(t), hello(""))
			defer d.to.Close()
			if !d.hear().OK {
				return false
			}
			if _, mapped := held(); !mapped {
				t.Error("the memory of a trainer is not mapped")
			}
			d.say(`{"op":"commit","steps":1}`)
			if end != "" {
				d.say(`{"op":%q}`, end)
			}
			return true
		})
	}
	serve("leave")
	clitest.Eventually(t, "its memory to go", func() bool { _, mapped := held(); return !mapped })
	first, _ := held()
	for range 10 {
		serve("leave")
		serve("")
	}
	clitest.Eventually(t, "all to go", func() bool {
		last, mapped := held()
		return last <= first && !mapped
	})
	if err := bridge.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := bridge.Wait(); err != nil {
		t.Errorf("the bridge's end: %v", err)
	}
}

// sealed is a memory that a bridge maps.
func sealed(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("trainers", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	t.Cleanup(func() { file.Close() })
	resize(t, file, 4*values)
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHostileTrainer: what a trainer does to a memory that can shrink is refused by name, by a file and
// by a memfd, and the peer lives: it goes on when the memory is right again.
func TestHostileTrainer(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"file", "memfd"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			file := memory(t)
			if way == "memfd" {
				file = unsealed(t, contents(t, file))
			}
			whole := contents(t, file)
			d := spawn(t, file)
			resize(t, file, 4*values-1)
			if a := d.say("%s", hello("")); a.Error.Code != "memory" {
				t.Fatalf("hello with too small a memory: %+v", a)
			}
			resize(t, file, 4*values)
			if _, err := file.WriteAt(whole, 0); err != nil {
				t.Fatal(err)
			}
			if a := d.say("%s", hello("")); !a.OK {
				t.Fatalf("%+v", a)
			}
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				put(t, file, 9, float32(bad))
				if a := d.say(`{"op":"commit","steps":1}`); a.Error.Code != "notfinite" {
					t.Errorf("%v: %+v", bad, a)
				}
				put(t, file, 9, 1)
			}
			for _, size := range []int64{4*values - 1, 4, 0} {
				resize(t, file, size)
				if a := d.say(`{"op":"commit","steps":1}`); a.Error.Code != "memory" {
					t.Errorf("%d bytes: %+v", size, a)
				}
				if got := contents(t, file); int64(len(got)) != size {
					t.Errorf("a refusal leaves %d bytes, where the trainer had %d", len(got), size)
				}
			}
			if _, err := file.WriteAt(whole, 0); err != nil {
				t.Fatal(err)
			}
			if a := d.say(`{"op":"commit","steps":1}`); !a.OK || a.Steps != 1 {
				t.Errorf("after the refusals: %+v", a)
			}
			writesMeanwhile(t, d, file)
			d.say(`{"op":"leave"}`)
			d.exits(cli.ExitDone)
		})
	}
}

// writesMeanwhile commits while the memory is written to, NaN now and then, and shrinks and grows again:
// each commit is done or refused by name, and one with good values follows.
func writesMeanwhile(t *testing.T, d *client, file *os.File) {
	t.Helper()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		nan, last := littleEndian(float32(math.NaN())), int64(4*(values-1))
		for n := 0; !stop.Load(); n++ {
			good, at := littleEndian(float32(n%3)), int64(4*(n%values))
			_, _ = file.WriteAt(nan, at)
			_, _ = file.WriteAt(good, at)
			_ = file.Truncate(last)
			_, _ = file.WriteAt(good, last)
		}
	}()
	answers := map[string]int{}
	for range 200 {
		a := d.say(`{"op":"commit","steps":1}`)
		if answers[a.Error.Code]++; !a.OK && a.Error.Code != "memory" && a.Error.Code != "notfinite" {
			t.Errorf("%+v", a)
		}
	}
	t.Logf("commits by code of refusal: %v", answers)
	stop.Store(true)
	<-done
	for at := range values {
		put(t, file, at, 1)
	}
	if a := d.say(`{"op":"commit","steps":1}`); !a.OK {
		t.Errorf("when the trainer keeps still: %+v", a)
	}
}

// unsealed is a memfd with a content, which can shrink.
func unsealed(t *testing.T, content []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	t.Cleanup(func() { file.Close() })
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	return file
}

func resize(t *testing.T, file *os.File, size int64) {
	t.Helper()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

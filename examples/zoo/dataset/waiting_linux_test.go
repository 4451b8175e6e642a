package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-97356399/murmuration/peer/decoded"
)

// busy is a folder of decoded data in which another job decodes, whatever is asked for. Waits returns once a job waits for it.
func busy(t *testing.T) (folder *decoded.Folder, waits func()) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("lock-%02x", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	touched := touches(t, dir)
	return &decoded.Folder{Dir: dir}, func() {
		for len(touched()) == 0 {
			runtime.Gosched()
		}
	}
}

// TestTheWaitForAnotherJobEnds: a stream that waits for another job to decode ends when it is closed, and Load when its ctx does.
func TestTheWaitForAnotherJobEnds(t *testing.T) {
	c := Config{Name: "images", Dir: write(t, map[string][]byte{
		"train.tar": archive(t, samplesOf(t, 0, 9, 8, 8)...), "test.tar": archive(t, samplesOf(t, 10, 3, 8, 8)...),
	})}
	settle(t, c.Dir)
	data, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	folder, waits := busy(t)
	data.stream.index.kept = folder
	batches, err := data.Batches(2, 1, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	waits()
	if err := batches.Close(); err != nil {
		t.Error(err)
	}
	for name, dir := range map[string]string{"images": c.Dir, "mnist": writeFamily(t, nil)} {
		settle(t, dir)
		folder, waits := busy(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := Load(ctx, Config{Name: name, Dir: dir, Decoded: folder})
			ended <- err
		}()
		waits()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

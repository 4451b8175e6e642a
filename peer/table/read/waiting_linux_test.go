package read

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

// TestTheWaitForAnotherJobEnds: Open and Rows, which wait for another job that decodes, end when their ctx does.
func TestTheWaitForAnotherJobEnds(t *testing.T) {
	path, folder := settledFile(t, "x.csv", "a,b\n1,2\n"), &decoded.Folder{Dir: t.TempDir()}
	if err := os.Chmod(folder.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 256 { // whatever is asked for, another job decodes it
		file, err := os.Create(filepath.Join(folder.Dir, fmt.Sprintf("lock-%02x", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	table := opened(t, Config{}, path)
	table.config.Decoded = folder
	for name, job := range map[string]func(ctx context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := Open(ctx, []string{path}, Config{Decoded: folder})
			return err
		},
		"Rows": func(ctx context.Context) error {
			for _, err := range table.Rows(ctx) {
				return err
			}
			return nil
		},
	} {
		touched := touches(t, folder.Dir)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- job(ctx) }()
		for len(touched()) == 0 {
			runtime.Gosched()
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

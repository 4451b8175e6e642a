package bridge

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAMemoryThatShrankIsNotMapped, though it was large enough a moment ago and is sealed now: who reads a page that it does not have
// ends the process.
func TestAMemoryThatShrankIsNotMapped(t *testing.T) {
	const size = 1 << 16
	for have, want := range map[int64]bool{size: true, size - 1: false, 0: false} {
		fd, err := unix.MemfdCreate("values", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "values")
		defer file.Close()
		if err := file.Truncate(have); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
			t.Fatal(err)
		}
		_, unmap, ok := mapSealed(file, size)
		if ok != want {
			t.Errorf("%d bytes of %d are mapped: %v", have, size, ok)
		}
		if ok {
			_ = unmap()
		}
	}
}

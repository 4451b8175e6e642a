package kernel

import (
	"syscall"
	"testing"
	"unsafe"
)

// beforePage returns n values right before a page that nobody can read, so that a
// kernel that reads beyond them crashes.
func beforePage(t *testing.T, n int) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map %d bytes: %v", size+page, err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Errorf("unmap: %v", err)
		}
	})
	if err := syscall.Mprotect(memory[size:], syscall.PROT_NONE); err != nil {
		t.Fatalf("protect a page: %v", err)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory[size-4*n:]))), n)
}

package tensor

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// TestMatMulStaysWithinPages has matrices that end right before a page, or begin
// right after one, that nobody may read.
func TestMatMulStaysWithinPages(t *testing.T) {
	const values = 3 * 4096 / ValueSize
	onTilers(t, func(t *testing.T, tiler kernel.Tiler) {
		var multiplier Multiplier
		a, b, c := fenced(t, values), fenced(t, values), fenced(t, values)
		for _, atEnd := range []bool{true, false} {
			at := func(v Vector, rows, cols int, transposed bool) Matrix {
				if v = v[:rows*cols]; atEnd {
					v = v[:values][values-rows*cols:]
				}
				if transposed {
					return NewMatrix(cols, rows, v).T()
				}
				return NewMatrix(rows, cols, v)
			}
			for m := 1; m < 16; m++ {
				for n := 1; n < 36; n++ {
					for _, k := range []int{1, 2, 3, 4, 5, 7, 9, 35} {
						for _, trans := range []bool{false, true} {
							multiplier.multiply(tiler, at(c, m, n, false), 1, at(a, m, k, trans), at(b, k, n, trans), 1)
						}
					}
				}
			}
		}
	})
}

// fenced returns values between two pages that fault when they are touched.
func fenced(t *testing.T, values int) Vector {
	t.Helper()
	const page = 4096
	all, err := syscall.Mmap(-1, 0, values*ValueSize+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map %d pages: %v", values*ValueSize/page+2, err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, fence := range [][]byte{all[:page], all[len(all)-page:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatalf("protect a page: %v", err)
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&all[page])), values)
}

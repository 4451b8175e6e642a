package main

import (
	"fmt"
	"go/format"
)

// panelText declares the argument of the products' microkernels. It is written
// to package kernel as it is here, and the offsets in the assembly follow from it.
const panelText = `package kernel

// GemmPanel is a product for as many columns as one call of a microkernel takes:
// C = Alpha·A·B + Beta·C, where C has Rows rows, A is Rows by Depth, and B is
// Depth by the number of columns. Steps are in bytes.
type GemmPanel struct {
	A         *float32
	RowStep   int // from a row of A to the next
	DepthStep int // from a column of A to the next
	B         *float32
	BStep     int      // from a row of B to the next
	Next      *float32 // the panel after this one, whose rows are asked for in time
	NextStep  int      // from a row of it to the next; 0 if there is nothing to ask for
	Room      *float32 // of B packed: a row has the microkernel's width
	Pack      int      // 1 if B is not yet in Room: it is put there, and Pack set to 0
	C         *float32
	CStep     int // from a row of C to the next
	Rows      int // at least 1
	Depth     int // at least 1
	Alpha     float32
	Beta      float32   // with 0, C is not read
	Masked    int       // 1 if the last vector of a row is not full
	Mask      *[8]int32 // of the last vector, in AVX2: -1 for each value
	Bits      uint32    // of the last vector, in AVX-512: one for each value
}
`

// gemmKernel is a microkernel: rows by so many vectors of C are in registers.
type gemmKernel struct {
	name    string
	vectors int
	rows    int
}

// gemmKernels have accumulators for all registers that are left beside a row of B
// and two values of A. The narrow one is for few columns, and has fewer loads of B
// and more of A for its multiplications.
func gemmKernels(l level) []gemmKernel {
	narrow := gemmKernel{name: "gemmNarrow", vectors: 1, rows: 12}
	if l.width == widthZ {
		return []gemmKernel{{name: "gemmWide", vectors: 2, rows: 12}, narrow}
	}
	return []gemmKernel{{name: "gemmWide", vectors: 2, rows: 6}, narrow}
}

// addGemm adds the microkernels of products: files of their own for each level,
// and the type of their argument.
func addGemm(files map[string][]byte) error {
	text, err := format.Source([]byte("// " + printing().GeneratedWarning() + "\n\n" + panelText))
	if err != nil {
		return err
	}
	files["gemm_panel_gen.go"] = text
	for _, l := range levels() {
		assembly, stubs, err := l.compileGemm()
		if err != nil {
			return fmt.Errorf("products in %s: %w", l.name, err)
		}
		files["gemm_"+l.file+"_amd64.s"] = assembly
		files["gemm_"+l.file+"_amd64_gen.go"] = stubs
	}
	return nil
}

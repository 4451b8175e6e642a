package kernel

// Tiler is a set of microkernels for products of matrices: those of one set of
// vector instructions. A microkernel keeps a tile of C in registers while it goes
// through the depth of A and B, and walks down a panel: as many columns as a tile
// has, and any number of rows. Every element is a sum in the order of the depth
// from zero on, of products that are added without being rounded before; so all
// of them give the same bits.
//
// The zero Tiler has no microkernel: there is no plain twin, since package tensor
// has gonum's product for that.
type Tiler uint8

// maxTileColumns is the number of columns of the widest panel of any Tiler.
const maxTileColumns = 32

// String names the instructions.
func (t Tiler) String() string { return [...]string{"none", "avx2", "avx512"}[t] }

// Columns returns how many columns the panels of the two microkernels have: those of two
// registers and of one.
func (t Tiler) Columns() (wide, narrow int) {
	return [...]int{0, 16, maxTileColumns}[t], [...]int{0, 8, 16}[t]
}

// Multiply computes a panel of so many columns: with the narrow microkernel if
// they fit, or else with the wide one, whose columns they must fit. Nothing
// outside of A, of B's rows and of C's is read or written but Room. The zero Tiler cannot.
func (t Tiler) Multiply(p *GemmPanel, columns int) { multiplyPanel(t, p, columns) }

// Transpose writes rows of src, at most 8 of depth values each, as columns of dst,
// of which it fills 8. Steps are in bytes, from a row to the next. The zero Tiler cannot.
func (t Tiler) Transpose(dst *float32, dstStep int, src *float32, srcStep, rows, depth int) {
	transposePanel(dst, dstStep, src, srcStep, rows, depth)
}

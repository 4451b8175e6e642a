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

package main

// blockLen is the number of values in a block. Kernels with checksums walk its
// quarters in turn.
const (
	blockLen = 1024
	quarters = 4
	quarter  = blockLen / quarters
)

// ahead is how many bytes beyond what a kernel works on it asks memory for.
const ahead = 2 * blockLen * floatSize

// codeAhead is ahead for streams of codes.
const codeAhead = 2 * blockLen

// group is how many values lowBytes takes in one or two times.
const group = 32

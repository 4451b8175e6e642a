//go:build !race

package pipeline

// sparing is by what runs are shorter under the race detector whose end shows what their middle does: members meet in the same ways
// for each step. Without it they are whole.
const sparing = 1

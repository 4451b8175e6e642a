// Package prepare makes of the columns of a table what models learn from, the same at every
// member of a flock: each stage is fitted by sums over all members' rows, of which none leaves its
// member (Share is the exception, and says so).
//
// A Pipeline is stages one after the other, and one file, with which the same is done to rows when
// the model serves.
package prepare

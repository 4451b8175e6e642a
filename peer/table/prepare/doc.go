// Package prepare turns the columns of a table into what models learn from, in the same way at
// every member of a flock: sums over all members' rows fit each stage, and no row leaves its
// member (except by Share).
//
// A Pipeline is a list of stages, which is written to one file, and prepares rows in the same way
// when the model serves.
package prepare

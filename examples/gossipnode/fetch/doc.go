// Package fetch is the command that downloads public data sets. Each file is pinned by
// its size and SHA-256, and gets its name only once it has both, so that what is there
// can be trusted, wherever it came from.
//
// A download whose connection failed is begun again, with a pause that grows from attempt to
// attempt; a file that is there is not fetched again. Archives are unpacked member by
// member, and only to names of this package's making.
//
// Limits: the sets of sets.go; package dataset says what each is, and reads them.
//
// Read command.go for the flags and fetcher.go for the order of things.
package fetch

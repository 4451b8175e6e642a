// Package fetch is the command that downloads public data sets. The size and SHA-256 of each file are known, and a
// file gets its name only after it has been verified: so existing files can be trusted, wherever they came from.
//
// A download is repeated after a failed connection, with growing pauses; an existing file is not downloaded again.
// Archives are unpacked member by member, to names that this package chooses.
//
// Limits: the data sets of sets.go, which package dataset describes and reads.
//
// Read command.go for the flags and fetcher.go for the process.
package fetch

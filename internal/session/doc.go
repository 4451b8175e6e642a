// Package session holds what two peers say to each other on a stream: an exchange of
// slices, a transfer, the questions about what an earlier exchange has left in doubt,
// and words. Each conversation is a small machine, pure as those of package averaging:
// frames and the time go in; frames, what the averaging machine has to know, and an end
// come out. The replica moves the floats.
//
// There is no stream, clock, goroutine or lock here. Whoever drives a conversation does
// what its Next says, one Do after the other: package peer over transport.Stream, package sim
// over links in virtual time. Only the lanes of an exchange may be driven at the same
// time, each by its own goroutines, because they share nothing but the replica's sides.
// docs/design/030 says why it is cut like this.
package session

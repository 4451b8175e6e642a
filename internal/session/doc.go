// Package session holds the conversations of two peers on a stream: an exchange of slices,
// a transfer, questions about slices in doubt of an earlier exchange, and messages. Each
// conversation is a small state machine, as pure as those of package averaging: frames and
// the time go in; frames, events for the averaging machine, and a result come out. The
// replica moves the floats.
//
// There is no stream, clock, goroutine or lock here. The driver of a conversation does what
// Next says, one Do after the other: package conversations over transport.Stream, package sim
// over links in virtual time. Only the lanes of an exchange may be driven at the same time,
// each by its own goroutines, because they share nothing but the replica's sides.
// docs/design/030 gives the reasons for this design.
package session

// Package sim is a world in virtual time: a queue holds the next events, and the
// clock jumps from one to the next. The machines and replicas in it are those of
// the library, and they exchange real frames. So a test drives the protocol
// through hours in seconds, and the same seed gives the same course of events, to
// the last bit of every parameter.
//
// A World is made of small pieces. Queue is time. A Link between two peers has
// delay, bandwidth and loss, and carries Streams, which can be cut at a given
// byte, stalled or tampered with. A peer passes events to its machine and carries
// out the answers on its replica, as package peer does over a real network. A Task
// says what the peers compute and for how long.
//
// The world is one goroutine, which forks and joins only to compute gradients (see Task):
// neither it nor what it hands out is safe for concurrent use. All peers share the memory
// for conversations, frames and gradients, so that a world can have ten thousand peers.
// Peers may come (copying a neighbour's model first), leave and crash; all the others learn
// of it at the same moment, some time later. An exchange or a transfer uses one stream, a
// message none. A partner that breaks the protocol is refused and not quarantined.
package sim

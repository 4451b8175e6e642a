// Package sim is a world in virtual time: what happens next is taken from a
// queue, and the clock jumps to it. The machines and replicas that live in it are
// the ones that ship, and what travels between them are real frames, so a test
// drives the protocol through hours in seconds, and the same seed gives the same
// course of events, to the last bit of every parameter.
//
// A World is made of small pieces. Queue is time. A Link between two peers has
// delay, bandwidth and loss, and carries Streams, which can be cut at a given
// byte, stalled or tampered with. A peer feeds its machine with events and carries
// the answers out on its replica, as package peer does over a real network. A
// Task says what the peers compute and for how long.
//
// The world is one goroutine, which forks and joins only to compute gradients (see Task):
// neither it nor what it hands out is safe for concurrent use. What a peer needs only for
// the moment, room for conversations, frames and gradients, is the world's, so that there
// may be ten thousand. Peers may come (copying a neighbour's model first), leave and crash;
// all the others hear of it at the same moment, a while later. An exchange or a transfer
// uses one stream, a word none. A partner that breaks the protocol is refused and not
// quarantined.
package sim

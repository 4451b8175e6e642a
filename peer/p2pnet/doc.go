// Package p2pnet is the default transport.Transport: authenticated, encrypted,
// multiplexed streams between processes, on go-libp2p. It speaks TCP with TLS
// 1.3 and yamux, and nothing else: no QUIC, no WebSocket, no address
// discovery, no metrics registry. Every option of libp2p that matters here is
// chosen in host.go, assemble.go and limits.go, with its reason.
//
// A peer is one Ed25519 key; other kinds of key are refused at the handshake.
// Streams carry the protocol by libp2p's own negotiation and the run's name in
// a few bytes before the first byte of the application, so that one Transport
// serves several peers of several runs.
//
// # Joining
//
// Connect takes a multiaddr (/ip4/192.0.2.7/tcp/4001, with or without a final /p2p/ID) or
// plain host:port, where the host may be a DNS name with several records. Without an id the
// identity is learned in a first handshake, logged, and trusted from then on: Config.Known
// names the file that remembers it. Give the id for more than trust on first use.
//
// # Lanes
//
// OpenLane opens streams over further connections to a peer, over its addresses in
// turn: an exchange that is split over several gets the rate of several paths where
// each has a limit. Where the processor is the limit, one connection is near it.
//
// # Topics
//
// Topic spreads small messages by gossipsub, among peers that are connected anyway: it
// dials nobody. gossip.go has its bounds. Gossipsub starts with the first topic; without
// topics there is no stream of it.
//
// # Speed
//
// TLS costs processor time per byte, and that bounds the rate of a stream. The
// sizes in limits.go and the gathered writes of internal/secure lower it; BenchmarkTuned
// shows by how much, against go-libp2p as it comes. Write whole frames: what is
// given to one Write goes out as one piece of up to 256 KiB.
//
// # Limits
//
// Memory that streams may buffer, connections and streams are bounded by Config.Limits, and
// so is every other resource a stranger can ask for: see limits.go, and
// internal/acceptlimit for connections of processes that are no members yet. Two peers
// share one connection, lanes aside, and an unused one is closed: see upkeep.go. A
// connection that a topic uses stays open, even if it is the second of two. A peer that
// cannot be dialled can still dial, and be reached through a relay: Config.Relay. A stream
// that timed out in the middle of bulk data should be reset rather than used again: yamux
// may have lost a window update, and the stream then runs slower or stalls.
//
// Package transport holds the interfaces, package peer the node that uses them,
// package memnet the same interfaces in memory for tests.
package p2pnet

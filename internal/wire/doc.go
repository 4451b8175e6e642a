// Package wire is the format in which peers speak: frames with a fixed
// little-endian header, a hard limit and a CRC32C each, and the messages that
// travel in them.
//
// A sender builds a frame in one buffer, without a copy: Reserve leaves room for
// the header, a message or a codec appends the payload, Seal fills the header in.
// A receiver takes frames from a Reader, which checks everything that can be
// checked before it reads, and holds, a payload, and lets the message decode
// itself: strictly, so that one message has one encoding.
//
// The package is a leaf and pure: no clock, no socket, no goroutine, no lock. It
// trusts no byte that it is given, and it knows nothing of what the messages do:
// an exchange is package peer's and package replica's matter, the bytes behind a
// sub-header a codec's (package quant). It does not authenticate either; a
// checksum finds accidents, and the transport below keeps strangers out.
//
// docs/WIRE.md specifies the format for other implementations, with the policy
// of versions; testdata/wire holds one annotated vector per frame.
package wire

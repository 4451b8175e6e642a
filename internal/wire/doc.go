// Package wire is the format of messages between peers: frames, and the messages in them. A frame has a fixed
// little-endian header, a size limit and a CRC32C.
//
// A sender builds a frame in one buffer, without a copy: Reserve leaves room for the header, a message or a codec
// appends the payload, Seal writes the header. A receiver takes frames from a Reader, which checks the header before
// it allocates memory for the payload, and lets the message decode the payload. Decoding is strict: one message has
// one encoding.
//
// The package is a leaf and pure: no clock, no socket, no goroutine, no lock. It trusts no byte that it receives, and
// does not know what messages are for: packages peer and replica carry out exchanges, and package quant reads the
// bytes after a sub-header. It does not authenticate: a checksum finds accidental changes, and the transport below
// keeps strangers out.
//
// docs/WIRE.md specifies the format for other implementations, and the rules for new versions; testdata/wire has one
// annotated vector for each frame.
package wire

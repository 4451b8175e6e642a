// Package seam holds the narrow interfaces between a peer and the world: how
// bytes reach another peer (Transport, Stream) and who is there (Membership),
// with the few types they speak in.
//
// It is a leaf: it imports nothing of this module, so that adapters (package
// p2pnet on libp2p, package swim on memberlist, package memnet in memory) and
// package peer can both import it, and so that a service may bring a transport
// of its own. Names and records are opaque here; package peer gives them their
// meaning.
//
// To write an adapter, implement Transport or Membership and hand it to
// peer.Config; package peertest shows the behaviour that is expected of both.
package seam

import (
	"errors"
	"fmt"
)

// PeerID is the text form of a peer's public key. Two peers are the same peer
// exactly if their ids are equal. The empty id names nobody.
type PeerID string

// Short returns the last eight characters of an id, for tables and log lines
// that a person reads. It identifies nothing securely.
func (id PeerID) Short() string {
	const kept = 8
	if len(id) <= kept {
		return string(id)
	}
	return string(id[len(id)-kept:])
}

// Protocol names what is spoken on a stream, version included.
type Protocol string

// The protocols of this library. A peer that does not speak one refuses its
// streams; docs/WIRE.md says what changes a version.
const (
	ProtocolHello    Protocol = "/murmuration/hello/1"
	ProtocolSwim     Protocol = "/murmuration/swim/1"
	ProtocolExchange Protocol = "/murmuration/exchange/1"
	ProtocolState    Protocol = "/murmuration/state/1"
	ProtocolControl  Protocol = "/murmuration/control/1"
)

// Errors that a Transport or a Stream reports, to be tested with errors.Is.
var (
	// ErrUnknownRun: the other process is reachable but has no handler for the
	// run that the stream was opened for. It may surface at the first Read.
	ErrUnknownRun = errors.New("the other process takes no part in this run")
	// ErrUnknownProtocol: the other process does not speak this protocol, or not
	// this version of it. It may surface at the first Read.
	ErrUnknownProtocol = errors.New("the other process does not speak this protocol version")
	// ErrUnreachable: no known address of the peer answered.
	ErrUnreachable = errors.New("no address of the peer answers")
	// ErrSelf: the address or id is the local peer's own.
	ErrSelf = errors.New("that is this peer itself")
	// ErrClosed: the transport or membership has been closed.
	ErrClosed = errors.New("closed")
)

// OldIncarnationError says that the network knows an earlier life of the local
// peer with the incarnation that was announced, or a higher one.
type OldIncarnationError struct {
	// Announced is the incarnation refused, Highest the highest that is known: the
	// next to announce is one more.
	Announced, Highest uint64
}

// Error names both incarnations.
func (e *OldIncarnationError) Error() string {
	return fmt.Sprintf("incarnation %d was used by an earlier life of this peer, which reached %d", e.Announced, e.Highest)
}

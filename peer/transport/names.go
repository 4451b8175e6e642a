// Package transport holds the narrow interfaces between a peer and the world: how bytes
// reach another peer (Transport, Stream) and who is there (Membership), with the few types
// that they use.
//
// It imports nothing of this module but the name of a peer from package topology, so
// that adapters (package p2pnet on libp2p, package swim on memberlist, package memnet in
// memory) and package peer can both import it, and so that a service may bring a
// transport of its own. Names and records are opaque here; package peer gives them their
// meaning.
//
// To write an adapter, implement Transport or Membership and hand it to
// peer.Config; package peertest shows the behaviour that is expected of both.
package transport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/topology"
)

// PeerID is the text form of a peer's public key. Two peers are the same peer
// exactly if their ids are equal. The empty id names nobody.
type PeerID = topology.PeerID

// Place is where in the network a member is, and Uplink the class of a rate.
type (
	Place  = topology.Place
	Uplink = topology.Uplink
)

// MaxSite bounds the name of a site, in bytes.
const MaxSite = topology.MaxSite

// maxID bounds the text of an id, in bytes.
const maxID = 128

// CheckID returns an error if a text cannot be the id of a peer over any transport.
func CheckID(id PeerID) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("an id of %d bytes: want 1 to %d", len(id), maxID)
	}
	if strings.ContainsFunc(string(id), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q is not the id of a peer", id)
	}
	return nil
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
	ProtocolMembers  Protocol = "/murmuration/members/1"
	ProtocolSum      Protocol = "/murmuration/sum/2"
	ProtocolRows     Protocol = "/murmuration/rows/1"
	ProtocolValues   Protocol = "/murmuration/values/1"
	ProtocolStages   Protocol = "/murmuration/stages/1"
)

// Errors that a Transport or a Stream reports, to be tested with errors.Is.
var (
	// ErrUnknownRun: the other process is reachable but has no handler for the
	// run that the stream was opened for. It may surface at the first Read.
	ErrUnknownRun = errors.New("the other process takes no part in this run")
	// ErrUnknownProtocol: the other process does not speak this protocol, or not
	// this version of it. It may surface at the first Read.
	ErrUnknownProtocol = errors.New("the other process does not speak this protocol version")
	// ErrLayout: the other process trains another model.
	ErrLayout = errors.New("another layout of parameters")
	// ErrUnreachable: no known address of the peer answered, or the process that answers is no peer.
	ErrUnreachable = errors.New("no peer answers there")
	// ErrSelf: the address or id is the local peer's own.
	ErrSelf = errors.New("that is this peer itself")
	// ErrDuplicate: another process has proved that it has the local peer's key. Of the two
	// processes the later one stops: a cloned machine needs a key of its own.
	ErrDuplicate = errors.New("another process has this peer's key: one of the two has to stop, or to have a key and checkpoints of its own")
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

// RefusedError says that a peer, asked to be joined, refused, and that asking again cannot
// help until somebody changes the configuration or the release of one of the two.
type RefusedError struct {
	// Peer is the one that refused, or that was refused.
	Peer PeerID
	// Why is ErrUnknownRun, ErrUnknownProtocol, ErrLayout or ErrNotAdmitted, which
	// errors.Is finds. Detail is what the other peer added, and Remedy what to do.
	Why            error
	Detail, Remedy string
}

// Error names the peer, the reason and what to do about it.
func (e *RefusedError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("peer %s refuses: %v. %s", e.Peer, e.Why, e.Remedy)
	}
	return fmt.Sprintf("peer %s refuses: %v (%s). %s", e.Peer, e.Why, e.Detail, e.Remedy)
}

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Why }

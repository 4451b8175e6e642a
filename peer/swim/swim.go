// Package swim finds the members of a run with hashicorp/memberlist: it
// implements transport.Membership with the SWIM protocol, carried by any transport.Transport, so
// a peer needs one port number and one identity, and every packet travels between
// authenticated peers.
//
// A member is known by its peer id, and counts once the local peer has met it: once there
// was an authenticated stream between the two, or it has answered a signed datagram with
// another. Its description of itself is a record signed by its key, which travels in
// memberlist's metadata and is verified before the member is accepted. A report by others
// that it is dead is not signed, though it is limited by what the member has signed. So a
// missing member is only a hint: probe a neighbour before giving it up.
//
// Up to WideAbove members packets travel by streams, and every member ends up connected to
// every other. A wider flock moves to datagrams, where the transport has them, and back
// when it shrinks: Config.Carrier. The book holds a few thousand. memberlist forgets a
// member that is gone for half a minute; this package goes on contacting it, so that
// partitions heal.
//
// Start with New. Package memnet has a Membership without timing for tests; the
// layout of a record is in record.go.
package swim

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// DefaultRejoinEvery is the default of Config.RejoinEvery.
const DefaultRejoinEvery = 10 * time.Second

// maxKeys bounds Config.GossipKeys: each is tried on what the others do not decrypt.
const maxKeys = 8

// Config describes a Membership.
type Config struct {
	// Transport carries the protocol. It must have an Ed25519 identity, and stays
	// the caller's to close, after the Membership.
	Transport transport.Transport
	// Run is the run's name, 1 to transport.MaxRunName bytes.
	Run string
	// Carrier says how the membership travels. Zero is Auto: streams, which make a
	// connection to every member, and datagrams in a flock of more than WideAbove, if the
	// transport has packets.
	Carrier Carrier
	// GossipKeys encrypt all messages, with the first key, and decrypt with any: 16, 24 or
	// 32 bytes each (memberlist's keyring, AES-GCM), the same for all members. Nil means no
	// keys: streams are encrypted anyway, but the path of datagrams can read who the
	// members are.
	GossipKeys [][]byte
	// RejoinEvery is the time between two attempts to reach a member that was lost
	// or a peer given to Join that does not answer. 0 is DefaultRejoinEvery.
	RejoinEvery time.Duration
	// Admission decides who may be a member; nil admits everybody of the run.
	Admission transport.Admission
	// Log gets refused records and memberlist's own messages; nil logs nothing.
	Log *zap.Logger
}

func (c Config) validate() error {
	var faults []error
	if c.Transport == nil {
		faults = append(faults, errors.New("Transport is missing"))
	} else if !validPeer(c.Transport.Self()) {
		faults = append(faults, fmt.Errorf("the transport's id %q is longer than %d bytes, empty, or has a slash or space", c.Transport.Self(), maxPeerID))
	}
	if c.Run == "" || len(c.Run) > transport.MaxRunName {
		faults = append(faults, fmt.Errorf("Run has %d bytes, 1 to %d are allowed", len(c.Run), transport.MaxRunName))
	}
	return errors.Join(append(faults, c.Validate())...)
}

// Validate reports all faults of the settings at once, whatever Transport and Run are.
func (c Config) Validate() error {
	var faults []error
	for i, key := range c.GossipKeys {
		if err := memberlist.ValidateKey(key); err != nil {
			faults = append(faults, fmt.Errorf("GossipKeys[%d] has %d bytes, 16, 24 or 32 are allowed", i, len(key)))
		}
	}
	if len(c.GossipKeys) > maxKeys {
		faults = append(faults, fmt.Errorf("GossipKeys has %d, at most %d are tried", len(c.GossipKeys), maxKeys))
	}
	if c.Carrier > Datagrams {
		faults = append(faults, fmt.Errorf("Carrier %d is none of Auto, Streams and Datagrams", c.Carrier))
	}
	if c.RejoinEvery < 0 {
		faults = append(faults, fmt.Errorf("RejoinEvery is %v, it cannot be negative", c.RejoinEvery))
	}
	return errors.Join(faults...)
}

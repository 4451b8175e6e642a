package peer

import (
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
)

// Reach says how others reach a peer, and what they may take of its process. All but
// Unreachable is for the default transport. The zero value is a peer that others can dial.
type Reach struct {
	// Unreachable says that others cannot reach this peer at all (it is behind a NAT,
	// and has no relay); it will only ever initiate.
	Unreachable bool
	// Relay is for peers that others cannot dial but through a relay, and for those that
	// are one.
	Relay p2pnet.Relay
	// Limits bound the memory, connections and streams that others take.
	Limits p2pnet.Limits
}

// Gossip says how the members of a run find each other, for the default membership.
type Gossip struct {
	// Carrier is what news of members travels by. Default: streams, and datagrams in
	// a flock of more than swim.WideAbove, which spare a connection to every member.
	Carrier swim.Carrier
	// Keys encrypt it, with the first, and decrypt it with any: 16, 24 or 32 bytes
	// each, the same for all peers. Default: none; streams are encrypted in any case.
	// It is no admission: see Admission.Key for that.
	Keys [][]byte
}

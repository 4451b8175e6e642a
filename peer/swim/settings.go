package swim

import (
	"log"
	"time"

	"github.com/hashicorp/memberlist"
)

// The timing, after memberlist's own for a LAN, which also holds where round
// trips stay below half a second. A crash is known after a probe and a suspicion.
const (
	probeInterval  = time.Second
	probeTimeout   = 500 * time.Millisecond
	gossipInterval = 200 * time.Millisecond
	gossipNodes    = 3
	// gossipMult makes up to nine members pass news on in two rounds of gossip
	// each. With memberlist's default of 4 it is one, and news misses somebody now
	// and then, until the next push/pull.
	gossipMult       = 6
	pushPullInterval = 15 * time.Second
	// syncTimeout bounds each step of a push/pull.
	syncTimeout = 5 * time.Second
	// suspicion and maxSuspicion: a member that answers no probe has three seconds to
	// respond, six if nobody else finds it silent. memberlist's four and twenty-four are
	// for larger flocks: if two of four members die at once, no other is left to confirm
	// it.
	suspicion    = 3
	maxSuspicion = 2
	// maxAwareness is how many times longer than probeInterval a probe may take on
	// a machine that finds itself too slow to keep up.
	maxAwareness = 3
	// farewellTimeout bounds the spreading of the last record before a departure.
	farewellTimeout = time.Second
	// leaveTimeout bounds the spreading of a departure: two rounds of gossip.
	leaveTimeout = 500 * time.Millisecond
	// settleTimeout bounds the wait for a last ack before a shutdown.
	settleTimeout = 200 * time.Millisecond
	// gossipSize is the most gossip that goes into one packet. Streams carry any
	// size, so it is larger than a datagram.
	gossipSize = 8 << 10
)

func settings(m *Membership) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = string(m.transport.Self())
	c.RequireNodeNames = true
	c.Transport = m.carrier
	c.BindPort, c.AdvertisePort = advertisePort, advertisePort

	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	c.AwarenessMaxMultiplier = maxAwareness
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicion, maxSuspicion
	// Packets and conversations share a connection, so probing by a conversation
	// as well would tell nothing new.
	c.DisableTcpPings = true
	c.TCPTimeout = syncTimeout
	c.PushPullInterval = pushPullInterval
	c.GossipInterval, c.GossipNodes, c.RetransmitMult = gossipInterval, gossipNodes, gossipMult
	c.UDPBufferSize = gossipSize
	c.EnableCompression = false // signatures do not compress

	c.Delegate = (*delegate)(m)
	c.Alive = (*delegate)(m)
	c.Events = (*delegate)(m)
	c.Ping = m.carrier.busy
	c.Logger = log.New(newLogWriter(m.log, m.stopping), "", 0)
	return c
}

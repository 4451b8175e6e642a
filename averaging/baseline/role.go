package baseline

import (
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Versions of the parameters, which grow by one with each update. Those of a coordinator are
// all its followers'; a peer that follows another coordinator than before has none.
const (
	unknownVersion uint64 = iota // of this peer alone
	initialVersion               // those with which all begin
	firstVersion                 // of a coordinator that begins with others
)

// role is what differs.
type role interface {
	begun()    // this peer coordinates
	followed() // it has taken a coordinator, be it after another or itself
	Report()   // tells the coordinator where this peer is
	ready()    // there is a gradient
	updated()
	lose(topology.PeerID)                        // goes on without one
	receive(topology.PeerID, collective.Message) // not about who coordinates
	offered(collective.Event)
	landed(collective.Event) // is the end of a transfer
	retransmit()             // speaks again, and breaks off what takes too long
	due()                    // does what is, after every event
}

package baseline

import (
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Versions of the parameters, which grow by one with each update. Followers have the version
// of their coordinator; a peer that follows a new coordinator has none.
const (
	unknownVersion uint64 = iota // of this peer alone
	initialVersion               // those with which all begin
	firstVersion                 // of a coordinator that begins with others
)

// role is the part that differs between AllReduce and ParamServer.
type role interface {
	begun()          // this peer coordinates
	followed()       // it follows a coordinator, perhaps after another, perhaps itself, or none for now
	newest() uint64  // the version of the parameters that this peer has, or is about to have
	Report()         // tells the coordinator where this peer is, if it is another
	partly(from int) // the values from one on of a gradient are ready
	ready()          // there is a gradient
	placed() bool    // others count on the gradient that is being computed
	updated()
	lose(topology.PeerID)                        // goes on without a peer
	receive(topology.PeerID, collective.Message) // not about who coordinates
	offered(collective.Event)
	landed(collective.Event) // handles the end of a transfer
	retransmit()             // repeats messages, and breaks off what takes too long
	due()                    // does what is due, after every event
}

package orders

import (
	"slices"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// ofProgram are those of the changes that a command says first which the program of this peer is to carry out. Where it
// is to be at another site, move is called. Before tells that the command was said to an earlier life, or before this peer
// came: it may leave, move, train or rest no more.
func ofProgram(changes []control.Change, said control.Command, self transport.PeerID, before bool, move func(site string)) []control.Change {
	changes = slices.DeleteFunc(changes, func(n control.Change) bool {
		own := n.Peer == self && !before
		switch n.Do {
		case control.Move:
			if own {
				move(n.Site)
			}
			return true
		case control.Drain, control.Train, control.Rest:
			return !own
		}
		return false
	})
	if !before && slices.ContainsFunc(changes, func(n control.Change) bool { return n.Do == control.Expel && n.Peer == self }) {
		changes = append(changes, control.Change{Peer: self, Do: control.Drain, Since: said.Sequence})
	}
	return changes
}

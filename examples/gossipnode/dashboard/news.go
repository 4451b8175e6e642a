package dashboard

import (
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// happening is an event that viewers should know.
type happening struct {
	At   int64  `json:"at"` // in milliseconds since 1970
	Kind string `json:"kind"`
	Peer string `json:"peer,omitempty"`
	Text string `json:"text"`
	// Detail is further information.
	Detail string `json:"detail,omitempty"`
}

// news has the latest events. Its owner locks it.
type news struct {
	kept   []happening
	known  map[transport.PeerID]control.State
	paused bool
	alarms watch.Alarms
}

// add adds an event.
func (n *news) add(kind string, id transport.PeerID, text string, detail ...error) happening {
	h := happening{At: time.Now().UnixMilli(), Kind: kind, Peer: string(id), Text: text}
	for _, err := range detail {
		h.Detail = cli.Cut(cli.Printable(err.Error()), maxDetail)
	}
	n.kept = append(n.kept[max(0, len(n.kept)+1-maxHappenings):], h)
	return h
}

// notice adds events for the differences from the last look.
func (n *news) notice(v *view) (changes []happening) {
	known := make(map[transport.PeerID]control.State, len(v.members))
	for _, m := range v.members {
		known[m.ID] = m.State
		was, here := n.known[m.ID]
		switch {
		case n.known == nil:
		case !here:
			changes = append(changes, n.add("joined", m.ID, "joined"))
		case was != m.State && (m.State == control.Over || m.State == control.Copying):
			changes = append(changes, n.add(m.State.String(), m.ID, describeState(m.State)))
		}
	}
	if v.Paused != n.paused {
		n.paused = v.Paused
		kind, text := "paused", "the operator holds all peers"
		if !v.Paused {
			kind, text = "resumed", "the operator lets all peers go on"
		}
		changes = append(changes, n.add(kind, "", text))
	}
	for id := range n.known {
		if _, here := known[id]; !here {
			changes = append(changes, n.add("gone", id, "is gone"))
		}
	}
	n.known = known
	return changes
}

func describeState(s control.State) string {
	if s == control.Copying {
		return "copies the model"
	}
	return "has seen the work done"
}

package baseline

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// driven is a machine whose every event a test gives by hand, a millisecond after the
// last.
type driven struct {
	t       *testing.T
	machine collective.Machine
	now     time.Duration
}

func (d *driven) handle(e collective.Event) []collective.Action {
	d.now += time.Millisecond
	actions := d.machine.Decide(d.now, e, nil)
	d.t.Logf("%s > %s", d.now, e)
	for _, a := range actions {
		d.t.Logf("    %s", a)
	}
	return actions
}

// view tells the machine who the members are: the first a passive, the others actives.
func (d *driven) view(ids ...topology.PeerID) {
	d.t.Helper()
	var members []topology.Member
	for i, id := range ids {
		role := topology.Active
		if i == 0 {
			role = topology.Passive
		}
		members = append(members, topology.Member{ID: id, Role: role})
	}
	view, err := topology.NewView(members)
	if err != nil {
		d.t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		d.t.Fatal(err)
	}
	d.handle(collective.Event{Event: averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}})
}

func (d *driven) told(by topology.PeerID, w collective.Message) []collective.Action {
	return d.handle(collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: by}, Message: w})
}

// inbound reports something of a transfer or exchange that a partner has begun, and
// returns the kind of the first answer to the partner, 0 if there is none.
func (d *driven) inbound(kind averaging.EventKind, by topology.PeerID, id averaging.ExchangeID, t collective.Transfer) collective.Action {
	for _, a := range d.handle(collective.Event{Event: averaging.Event{Kind: kind, Peer: by, Exchange: id, Inbound: true}, Transfer: t}) {
		if a.Kind == averaging.Accept || a.Kind == averaging.Refuse {
			return a
		}
	}
	return collective.Action{}
}

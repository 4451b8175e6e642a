package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// adapters are the transport and the membership by which a peer reaches the others: those
// of its configuration, or the default ones.
type adapters struct {
	transport  transport.Transport
	own        *p2pnet.Transport // below transport; nil if that is Config.Network.Transport
	membership transport.Membership
	guard      *admit.Guard // nil if everybody is admitted
}

// open brings the adapters up. It calls introduce for a relay that asks who the peer is,
// and reachable once it is known whether others can dial the peer.
func (a *adapters) open(network Network, introduce func(context.Context, transport.PeerID) error, reachable func(bool)) (err error) {
	a.transport = network.Transport
	if a.guard, err = network.guard(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if a.transport == nil {
		if a.own, err = p2pnet.New(p2pnet.Config{
			Identity: network.Identity, Listen: network.Listen, Known: network.KnownPeers,
			Admit: a.guard.AdmitID, Member: a.guard.TakesPart, Introduce: introduce, Reachable: reachable,
			Relay: network.Relay, Uplink: network.Uplink, Log: network.Log,
		}); err != nil {
			return err
		}
		a.transport = a.own
	}
	a.transport = a.guard.Over(a.transport)
	if a.membership != nil {
		return nil
	}
	membership, err := swim.New(swim.Config{
		Transport: a.transport, Run: network.Run, Admission: a.guard.OfMembers(),
		Carrier: network.Carrier, GossipKeys: network.GossipKeys, Log: network.Log.With(zap.String("self", a.transport.Self().Short())),
	})
	if err == nil {
		a.membership = membership
	}
	return err
}

// spread is the time that the operator's word has to reach those whom it expels, before they are disconnected, and maxWaiting
// bounds the changes of the list that wait meanwhile.
const spread, maxWaiting = time.Second, 1024

// obeying has a program carry out what the operator says of members: a change of the list after spread, and the list is then read
// again; all else at once.
func (a *adapters) obeying(changed func(string, []control.Change), life *tasks.Life) func(string, []control.Change) {
	if changed == nil {
		return nil
	}
	turn, waiting := make(turn, 1), make(chan func(), maxWaiting) // in order, which goroutines that wake up together are not
	return func(why string, changes []control.Change) {
		listed := func(n control.Change) bool { return n.Do == control.Admit || n.Do == control.Expel }
		ofList := slices.DeleteFunc(slices.Clone(changes), func(n control.Change) bool { return !listed(n) })
		if others := slices.DeleteFunc(changes, listed); len(others) > 0 {
			release := turn.take() // before it waits for room below
			changed(why, others)
			release()
		}
		if len(ofList) > 0 && life.Spawn(func(context.Context) {
			select {
			case <-time.After(spread):
				defer turn.take()()
				(<-waiting)()
				a.guard.Look()
			case <-life.Closing: // a later life hears of it again
				<-waiting
			}
		}) {
			waiting <- func() { changed(why, ofList) }
		}
	}
}

// disconnect ends the connections with a peer, if this peer opened the transport itself.
func (a *adapters) disconnect(id transport.PeerID) {
	if a.own != nil {
		a.own.Disconnect(id)
	}
}

// service is a protocol that others may speak.
type service struct {
	protocol transport.Protocol
	handler  transport.Handler
}

// serve registers the protocols of a run until life ends.
func (a *adapters) serve(run string, life *tasks.Life, services []service) error {
	for _, s := range services {
		stop, err := a.transport.Handle(s.protocol, run, s.handler)
		if err != nil {
			return fmt.Errorf("serving %s: %w", s.protocol, err)
		}
		life.Ends(stop)
	}
	return nil
}

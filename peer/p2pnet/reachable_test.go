package p2pnet

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	ma "github.com/multiformats/go-multiaddr"
)

// TestReachableIsTold: what libp2p finds out is told, but not that it knows nothing.
func TestReachableIsTold(t *testing.T) {
	config, told := loopback(), make(chan bool)
	config.Reachable = func(reachable bool) { told <- reachable }
	at := start(t, config)
	emitter, err := at.host.EventBus().Emitter(new(event.EvtLocalReachabilityChanged), eventbus.Stateful)
	if err != nil {
		t.Fatal(err)
	}
	defer emitter.Close()
	for _, found := range []network.Reachability{
		network.ReachabilityPrivate, network.ReachabilityUnknown, network.ReachabilityPublic, network.ReachabilityUnknown, network.ReachabilityPublic,
	} {
		if err := emitter.Emit(event.EvtLocalReachabilityChanged{Reachability: found}); err != nil {
			t.Fatal(err)
		}
		if found == network.ReachabilityPublic && !receive(t, "what was found", told) {
			t.Errorf("%v is told as not reachable", found)
		}
	}
}

// TestReachableIsJudged: that nobody can dial this process is believed while somebody
// outside is connected who could have tried, and nobody of those has dialled.
func TestReachableIsJudged(t *testing.T) {
	relay, member := "/ip4/8.8.8.8/tcp/4001", "/ip4/192.168.0.9/tcp/4001"
	for name, c := range map[string]struct {
		found    network.Reachability
		conns    []network.Conn
		want     bool
		believed bool
	}{
		"found public":         {network.ReachabilityPublic, nil, true, true},
		"nobody else":          {network.ReachabilityPrivate, nil, true, false},
		"a network of its own": {network.ReachabilityPrivate, []network.Conn{linked{remote: member, direction: network.DirOutbound}}, true, false},
		"a relay outside":      {network.ReachabilityPrivate, []network.Conn{linked{remote: relay, direction: network.DirOutbound}}, false, true},
		"dialled from outside": {network.ReachabilityPrivate, []network.Conn{linked{remote: relay, direction: network.DirInbound}}, true, false},
	} {
		if got, because := judge(c.found, c.conns); got != c.want || (because == "") != c.believed {
			t.Errorf("%s: reachable %v, not believed because %q", name, got, because)
		}
	}
}

// linked is a connection of which only the ends are known.
type linked struct {
	network.Conn
	remote    string
	direction network.Direction
}

func (l linked) RemoteMultiaddr() ma.Multiaddr { return ma.StringCast(l.remote) }
func (l linked) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: l.direction}}
}

// TestDialledFromAfar: what shows that a relay is wrong is that somebody has dialled, from
// outside this process's network, and not through a relay.
func TestDialledFromAfar(t *testing.T) {
	for _, c := range []struct {
		remote    string
		direction network.Direction
		want      bool
	}{
		{"/ip4/8.8.8.8/tcp/4001", network.DirInbound, true},
		{"/ip4/8.8.8.8/tcp/4001", network.DirOutbound, false},
		{"/ip4/192.168.0.9/tcp/4001", network.DirInbound, false},
		{"/ip4/8.8.8.8/tcp/4001/p2p/" + idOf(t, 1).String() + "/p2p-circuit", network.DirInbound, false},
	} {
		if got := dialledFromAfar(linked{remote: c.remote, direction: c.direction}); got != c.want {
			t.Errorf("%s, %v: %t", c.remote, c.direction, got)
		}
	}
}

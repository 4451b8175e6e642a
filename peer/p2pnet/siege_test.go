package p2pnet

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/host/autonat/pb"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestAStrangerIsNotAskedWhetherItCanDial: whoever connects and says that it speaks
// AutoNAT, with a public address of its own, is not asked whether it can dial this process
// unless it is a member; its answer had every peer active in two seconds, and a run
// without passive ones exchanges nothing.
func TestAStrangerIsNotAskedWhetherItCanDial(t *testing.T) {
	t.Parallel()
	for _, member := range []bool{false, true} {
		config, told := loopback(), make(chan bool, 1)
		config.Reachable = func(reachable bool) { told <- reachable }
		victim := start(t, config)
		identified, err := victim.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
		if err != nil {
			t.Fatal(err)
		}
		defer identified.Close()
		liar := plainHost(t, nil, func(own []ma.Multiaddr) []ma.Multiaddr {
			return append(slices.Clip(own), ma.StringCast("/ip4/8.8.8.8/tcp/4001"))
		})
		asked := make(chan struct{}, 1)
		liar.SetStreamHandler(autonat.AutoNATProto, func(s network.Stream) {
			defer s.Close()
			var question pb.Message
			_ = pbio.NewDelimitedReader(s, 4096).ReadMsg(&question)
			_ = pbio.NewDelimitedWriter(s).WriteMsg(&pb.Message{Type: pb.Message_DIAL_RESPONSE.Enum(),
				DialResponse: &pb.Message_DialResponse{Status: pb.Message_E_DIAL_ERROR.Enum()}})
			select {
			case asked <- struct{}{}:
			default:
			}
		})
		if member {
			victim.Learn(transport.PeerID(liar.ID().String()), []string{"/ip4/8.8.8.8/tcp/4001"})
		}
		if err := liar.Connect(t.Context(), peer.AddrInfo{ID: victim.host.ID(), Addrs: victim.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
		receive(t, "the liar is identified", identified.Out())
		if member {
			receive(t, "a member is asked", asked)
		} else if known, err := victim.host.Peerstore().SupportsProtocols(liar.ID(), autonat.AutoNATProto); err != nil || len(known) > 0 {
			t.Errorf("a stranger would be asked: %v, %v", known, err)
		}
		select {
		case reachable := <-told: // by a member that is on the same network
			t.Errorf("of a member %v: told as reachable: %v", member, reachable)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

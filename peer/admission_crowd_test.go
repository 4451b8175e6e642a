package peer_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// 300 connections on which nobody says anything keep no holder of the key out of a run
// that has one, and the log of its peer names where they come from.
func TestIdleConnectionsKeepNobodyOutOfAClosedRun(t *testing.T) {
	const crowd, tries = 300, 8
	admission := peer.Admission{RunKey: bytes.Repeat([]byte{7}, transport.MinRunKey)}
	core, logs := observer.New(zap.WarnLevel)
	host := start(t, peer.Config{
		Run:     "digits",
		Params:  newModel(),
		Network: peer.Network{Log: zap.New(core), Listen: []string{"127.0.0.1:0"}, Admission: admission},
	})
	address := host.JoinAddresses()[0]
	at, err := ma.NewMultiaddr(address)
	if err != nil {
		t.Fatal(err)
	}
	at, _ = ma.SplitLast(at) // without /p2p/ID
	_, place, err := manet.DialArgs(at)
	if err != nil {
		t.Fatal(err)
	}
	for range crowd {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", place)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	named := func(e observer.LoggedEntry) bool { return e.ContextMap()["block"] == "127.0.0.0/24" }
	for end := time.Now().Add(controlPatience); logs.Filter(named).Len() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("no line in the log names the block")
			break
		}
	}
	in := 0
	for range tries {
		asker, err := p2pnet.New(p2pnet.Config{Listen: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		if found, err := admission.Inquire(t.Context(), asker, address, "digits", newModel().Layout().Hash()); err != nil {
			t.Logf("%+v: %v", found, err)
		} else {
			in++
		}
	}
	if in != tries {
		t.Errorf("%d of %d holders of the key get in", in, tries)
	}
	if refused := host.Counters().TransportRefused; refused["gave way"] == 0 {
		t.Errorf("none is counted that gave way: %v", refused)
	}
}

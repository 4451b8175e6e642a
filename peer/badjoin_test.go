package peer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// TestStartRefusesAddressesThatNobodyCouldDial: all of them at once, each with what is wrong.
func TestStartRefusesAddressesThatNobodyCouldDial(t *testing.T) {
	bad := map[string]string{
		"192.0.2.7": "not host:port", "192.0.2.7:0": "port 0", "0.0.0.0:4001": "names no machine", "/ip4/192.0.2.7/udp/4001": "only a host, /tcp/PORT",
		"/unix/run/peer": "understood", "192.0.2.7:99999": "not a number from 1 to 65535",
	}
	config := peer.Config{Run: "digits", Params: newModel()}
	for address := range bad {
		config.Join = append(config.Join, address)
	}
	p, err := peer.Start(t.Context(), config)
	if err == nil {
		p.Close()
		t.Fatal("it has begun")
	}
	for address, why := range bad {
		if !strings.Contains(err.Error(), `"`+address+`": `) || !strings.Contains(err.Error(), why) || !errors.Is(err, p2pnet.ErrAddress) {
			t.Errorf("%s: no %q in %v", address, why, err)
		}
	}
}

package peer_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestStartRefuses what cannot be meant, and says what to do instead.
func TestStartRefuses(t *testing.T) {
	missing, wrong := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("# all\n12D3KooWnot-an-id\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	incarnation := func(n uint64) func(*peer.Config) { // it would wrap, or use the identity up
		return func(c *peer.Config) {
			c.Training.Checkpoint = peer.CheckpointOf(stats.Peer{Steps: 5, Age: 5, FlockSteps: 5, Incarnation: n})
		}
	}
	for name, c := range map[string]struct {
		change func(*peer.Config)
		want   string
	}{
		"a key that can be guessed":    {func(c *peer.Config) { c.Network.Admission.RunKey = []byte("guess me") }, "want 16 to 1024"},
		"a list that is not there":     {func(c *peer.Config) { c.Network.Admission.Allow = missing }, "make the file"},
		"a list of what is no id":      {func(c *peer.Config) { c.Network.Admission.Allow = wrong }, "line 2"},
		"the incarnation that is last": {incarnation(transport.MaxIncarnation), "begin without the checkpoint"},
		"an absurd incarnation":        {incarnation(math.MaxUint64), "begin without the checkpoint"},
	} {
		config := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Listen: []string{"127.0.0.1:0"}}}
		c.change(&config)
		if _, err := peer.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

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

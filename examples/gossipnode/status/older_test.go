package status

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestOlderRelease says of a member that knows nothing of status what to do.
func TestOlderRelease(t *testing.T) {
	transport, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	stop, err := transport.Handle(seam.ProtocolHello, "murmuration", func(s seam.Stream) { s.Reset() })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	code, _, errs := program.Try("status", "--join", transport.JoinAddresses()[0])
	if code != cli.ExitFailed || !strings.Contains(errs, "ask one of this release") {
		t.Errorf("code %d: %s", code, errs)
	}
}

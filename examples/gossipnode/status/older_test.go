package status

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestOlderRelease says of a member that knows nothing of status what to do.
func TestOlderRelease(t *testing.T) {
	tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	stop, err := tr.Handle(transport.ProtocolHello, "murmuration", func(s transport.Stream) { s.Reset() })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	code, _, errs := program.Try("status", "--join", tr.JoinAddresses()[0])
	if code != cli.ExitFailed || !strings.Contains(errs, "ask one of this release") {
		t.Errorf("code %d: %s", code, errs)
	}
}

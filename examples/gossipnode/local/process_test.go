package local

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

func TestNextPorts(t *testing.T) {
	for _, c := range []struct {
		address string
		by      int
		want    string
	}{{"127.0.0.1:0", 3, "127.0.0.1:0"}, {"[::1]:4001", 3, "[::1]:4004"}, {":65532", 3, ":65535"}, {"", 3, ""}} {
		if got, err := nextPorts([]string{c.address}, c.by); err != nil || got[0] != c.want {
			t.Errorf("%q by %d: %q, error %v, want %q", c.address, c.by, got, err, c.want)
		}
	}
	for _, address := range []string{":65533", "host", "host:", "host:x", "/ip4/127.0.0.1/tcp/0", ":-1"} {
		if got, err := nextPorts([]string{address}, 3); err == nil || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %q, error %v", address, got, err)
		}
	}
}

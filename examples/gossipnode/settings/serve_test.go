package settings

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestWhoServesPredictions: a peer that trains, on pictures or a table.
func TestWhoServesPredictions(t *testing.T) {
	for line, says := range map[string]string{
		"--serve :8000": "", "--serve 127.0.0.1:8000 --serve-token file": "", "--serve 8000": "want host:port", "--serve-token file": "needs --serve",
		"--serve :8000 --hold": "needs a peer that trains", "--serve :8000 --dataset gosource --model gpt": "needs a peer that trains",
	} {
		var s Settings
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := s.Validate(cli.Origins{})
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestALossThatRunsAwayIsTold: while it does, and with the result, in words and in JSON, of run
// and of local; one that falls is not.
func TestALossThatRunsAwayIsTold(t *testing.T) {
	t.Parallel()
	for rate, away := range map[string]bool{"3000": true, "0.03": false} {
		for want, args := range map[string][]string{
			"THE LOSS RAN AWAY":     {"run", "--listen", "127.0.0.1:0"},
			`"loss_ran_away":true,`: {"local", "--peers", "2", "--in-process", "--json"},
		} {
			t.Run(args[0]+" at "+rate, func(t *testing.T) {
				t.Parallel()
				code, out, logged := try(append(args, "--model", "softmax", "--steps", "300", "--lr", rate)...)
				if code != cli.ExitDone || strings.Contains(out, want) != away || strings.Contains(logged, "the loss runs away") != away {
					t.Errorf("exit code %d, a loss that runs away: %v\n%s\n%s", code, away, logged, out)
				}
			})
		}
	}
}

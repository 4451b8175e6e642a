package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestUnknownVariables shows that a variable which is misspelt is told, with the one that
// was meant, and that those of any command are not.
func TestUnknownVariables(t *testing.T) {
	root, run, bench, step := &cobra.Command{Use: "node"}, &cobra.Command{Use: "run"}, &cobra.Command{Use: "bench"}, &cobra.Command{Use: "step"}
	root.AddCommand(run, bench)
	bench.AddCommand(step)
	run.Flags().Int("batch", 1, "")
	run.Flags().String("checkpoint-every", "", "")
	step.Flags().Int("rounds", 1, "")
	for _, c := range []struct{ environment, want string }{
		{"", ""},
		{"HOME=/h GOSSIPNODE_BATCH=3 GOSSIPNODE_ROUNDS=2 GOSSIPNODE_CHECKPOINT_EVERY=1m GOSSIPNODE_CONFIG=f", ""},
		{"GOSSIPNODE_BACTH=3", "GOSSIPNODE_BACTH (did you mean GOSSIPNODE_BATCH?)"},
		{"GOSSIPNODE_SERVICE_HOST=10.0.0.1 GOSSIPNODE_ROUND=3", "GOSSIPNODE_ROUND (did you mean GOSSIPNODE_ROUNDS?), GOSSIPNODE_SERVICE_HOST"},
	} {
		got := unknownVariables(root, strings.Fields(c.environment))
		if c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%q: %q, want %q", c.environment, got, c.want)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("GOSSIPNODE_PORT_%d_TCP=1", i))
	}
	if got := unknownVariables(root, many); !strings.HasSuffix(got, "and 12 more") {
		t.Errorf("%q", got)
	}
}

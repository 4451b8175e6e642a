package cli

import (
	"slices"
	"testing"
)

// TestChildEnvironment shows that children share the cores unless told
// otherwise, and take no settings from the environment.
func TestChildEnvironment(t *testing.T) {
	got := childEnvironment([]string{"HOME=/h", "GOSSIPNODE_PEERS=3"}, 4, 10)
	if want := []string{"HOME=/h", "GOMAXPROCS=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := childEnvironment(nil, 4, 2); !slices.Equal(got, []string{"GOMAXPROCS=2"}) {
		t.Errorf("more peers than cores: %q", got)
	}
	given := []string{"GOMAXPROCS=7"}
	if got := childEnvironment(given, 4, 8); !slices.Equal(got, given) {
		t.Errorf("%q, want %q", got, given)
	}
}

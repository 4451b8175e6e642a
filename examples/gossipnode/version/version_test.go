package version

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestVersion shows that the version is told, with that of the wire.
func TestVersion(t *testing.T) {
	code, text, _ := try("version", "--json")
	var b build
	if err := json.Unmarshal([]byte(text), &b); err != nil || code != cli.ExitDone || b.Version == "" || b.Wire != 1 || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("exit code %d, %s, error %v", code, text, err)
	}
}

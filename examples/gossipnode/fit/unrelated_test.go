package fit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// What tells nothing of the target is left out, the same by one peer and by four of unlike rows; a rate that cannot be,
// or nothing to relate to, is a fault.
func TestDropUnrelated(t *testing.T) {
	args := []string{"--learner", "tree", "--target", "price>200", "--drop", "note", "--drop-unrelated", "0.02"}
	one, four := fit(t, args...), fit(t, append(args, "--peers", "4", "--shard", "by=color", "--in-process")...)
	left := fmt.Sprint(one["unrelated"])
	if left != fmt.Sprint(four["unrelated"]) || one["model_hash"] != four["model_hash"] || left != "[age]" {
		t.Errorf("%v and %v are left out, models %v and %v", one["unrelated"], four["unrelated"], one["model_hash"], four["model_hash"])
	}
	if all := fit(t, args[:6]...); all["unrelated"] != nil || all["columns"].(float64) <= one["columns"].(float64) {
		t.Errorf("%v", all)
	}
	for _, wrong := range [][]string{{"--target", "price", "--drop-unrelated", "1"}, {"--learner", "kmeans", "--drop-unrelated", "0.1"}, {"--target", "price", "--distinct", "--drop-unrelated", "0.1"}} {
		if code, _, stderr := program.Try(append([]string{"fit", "--data", houses}, wrong...)...); code != cli.ExitUsage || !strings.Contains(stderr, "--drop-unrelated") {
			t.Errorf("%q: exit code %d, %s", wrong, code, stderr)
		}
	}
}

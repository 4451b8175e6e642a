package local

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
)

// Peers of which each has rows of one class only learn from those of all, where rows may move.
func TestShareRows(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	text.WriteString("a,b,side\n")
	for range 1200 {
		a, b := draw.NormFloat64(), draw.NormFloat64()
		fmt.Fprintf(&text, "%.3f,%.3f,%s\n", a, b, map[bool]string{true: "in", false: "out"}[a*a+b*b < 1.4])
	}
	args := []string{"local", "--json", "--in-process", "--peers=2", "--dataset=csv", "--data", clitest.WriteFile(t, "x.csv", text.String()),
		"--target=side=in", "--shard=by=side", "--split=row:7/10", "--epochs=40", "--share-rows=400"}
	code, out, stderr := program.Try(args...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var r result.Result
	if clitest.LastLine(t, out, &r); r.AUC == nil || r.AUC.Min < 0.95 {
		t.Errorf("%s", out)
	}
	if code, _, stderr := program.Try(append(args, "--share-rows=-1")...); code != cli.ExitUsage || !strings.Contains(stderr, "--share-rows") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

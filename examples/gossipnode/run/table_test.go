package run

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
)

// colored is a file of rows of some colors.
func colored(t *testing.T, colors ...string) string {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, uint64(len(colors))))
	var text strings.Builder
	text.WriteString("a,color,note,total\n")
	for range 300 {
		a, color := draw.NormFloat64(), colors[draw.IntN(len(colors))]
		fmt.Fprintf(&text, "%.3f,%s,1,%.3f\n", a, color, a+float64(len(color)-4))
	}
	return clitest.WriteFile(t, "rows.csv", text.String())
}

// told starts a peer, and waits until it says something.
func told(t *testing.T, says string, args ...string) (line string, lines <-chan string) {
	t.Helper()
	cmd := clitest.Command(t, time.Minute, append([]string{"run", "--listen", settings.Loopback}, args...)...)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	lines = clitest.ScanLines(t, logs)
	return until(t, lines, says), lines
}

func until(t *testing.T, lines <-chan string, says string) string {
	t.Helper()
	var all []string
	for line := range lines {
		if all = append(all, line); strings.Contains(line, " warn ") {
			t.Error(line)
		}
		if strings.Contains(line, says) {
			return line
		}
	}
	t.Fatalf("no %q in\n%s", says, strings.Join(all, "\n"))
	return ""
}

// Peers with files of their own prepare their rows together and train; one that comes later takes
// over what rows are prepared by from a file, and the model from the others.
func TestPeersWithTablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	pipeline := filepath.Join(t.TempDir(), "p")
	line, founder := told(t, "--join murmuration1", "--dataset=csv", "--target=total>0", "--drop=note", "--floor=2", "--data", colored(t, "red", "green"), "--min-peers=2", "--steps=1000000000", "--pipeline", pipeline)
	_, invitation, _ := strings.Cut(line, "--join ")
	_, second := told(t, "training mlp on csv", "--join", invitation, "--data", colored(t, "red", "green", "yellow"))
	until(t, founder, "training mlp on csv")
	_, third := told(t, "model copied", "--join", invitation, "--data", colored(t, "yellow"), "--pipeline", pipeline)
	until(t, third, "training mlp on csv")
	go func() {
		for range second {
		}
	}()
	code, _, stderr := try("run", "--listen", settings.Loopback, "--join", invitation, "--data", colored(t, "yellow"))
	if code != cli.ExitUsage || !strings.Contains(stderr, "--pipeline is missing") || !strings.Contains(stderr, "drop note") || !strings.Contains(stderr, "target total>0") {
		t.Errorf("without the file: exit code %d: %s", code, stderr)
	}
	address := clitest.Peer(t, peer.Admission{}, description.Field{Name: "dataset", Value: "csv"}, description.Field{Name: "preparation", Value: "0123456789abcdef"}, description.Field{Name: "target", Value: "total>0"})
	code, _, stderr = try("run", "--listen", settings.Loopback, "--join", address, "--data", colored(t, "yellow"), "--pipeline", pipeline)
	if code != cli.ExitUsage || !strings.Contains(stderr, "prepared otherwise") {
		t.Errorf("with the file of another run: exit code %d: %s", code, stderr)
	}
}

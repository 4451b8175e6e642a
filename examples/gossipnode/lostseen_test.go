package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// TestLostAndResultAreSeen: of a local run whose dashboard stays, the page shows a peer that is killed
// as lost, by its name, to the end; then all others as over, and the figures of the result
// in place of those that were sampled on the way.
func TestLostAndResultAreSeen(t *testing.T) {
	t.Parallel()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("left out by -short, and where there is no /proc to find the children in: four processes train for some seconds")
	}
	key := filepath.Join(t.TempDir(), "operator.key")
	if _, err := keys.Generate(key, false); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := command(t, localArgs(clitest.Pictures(t, 400, 200), "--peers", "4", "--every", "20", "--steps", "100000000", "--step-time", "2ms", "--dashboard", "127.0.0.1:0", "--dashboard-stay", "yes", "--operator-key", key)...)
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says := clitest.ScanLines(t, errs)
	url := find(t, says, `dashboard at (\S+)$`)
	where, err := token.Parse(find(t, says, `--join (\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		find(t, says, `the dashboard (stays) until Ctrl-C`)
		go drain(says)
	}()
	var seen picture
	clitest.Eventually(t, "four that train", func() bool { seen = look(t, url); return len(names(seen.State.Members)) == 4 })
	photograph(t, url, "training-local", 4)
	children := clitest.ChildrenOf(t, cmd.Process.Pid)
	victim, err := os.FindProcess(children[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	states := func(of string) (called string) {
		for _, m := range seen.State.Members {
			if m.State == of {
				called += m.Name + ","
			}
		}
		return called
	}
	clitest.Eventually(t, "one that is lost", func() bool { seen = look(t, url); return states("lost") != "" })
	lost := states("lost")
	photograph(t, url, "lost", 4)
	if code, _, errs := try("control", "stop", "--join", where.Join()[0], "--operator-key", key); code != 0 {
		t.Fatal(errs)
	}
	<-ended
	clitest.Eventually(t, "the figures of the result", func() bool { seen = look(t, url); return seen.State.Final != nil })
	if states("lost") != lost || len(lost) != len("peer 2,") || len(states("over")) != 3*len(lost) || seen.State.State != "over" {
		t.Errorf("lost was %q; at the end %q are lost and %q over, and this one is %s", lost, states("lost"), states("over"), seen.State.State)
	}
	photograph(t, url, "result", 4)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	done := lastLine(t, out.String())
	if f := seen.State.Final; f.String() != done.String() || f.Loss != done.Loss {
		t.Errorf("the page shows %+v; the result is %+v", f, done)
	}
}

package fit

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestInterruptedTwice: processes that do not leave when they are asked to are killed at a second
// interrupt.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	cmd := clitest.Command(t, time.Minute, "fit", "--data", houses, "--target", "price>200", "--learner", "boost", "--trees", "100000", "--peers", "2")
	log := new(clitest.Buffer)
	cmd.Stderr = struct{ io.Writer }{log} // not its ReadFrom, which does not lock
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var children []int
	for range 600 {
		if children = clitest.ChildrenOf(t, cmd.Process.Pid); len(children) == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(children) != 2 {
		t.Fatalf("%d children: %s", len(children), log)
	}
	if err := syscall.Kill(children[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	interrupt := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	for began := time.Now(); !strings.Contains(log.String(), "interrupt again") && time.Since(began) < 30*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(1100 * time.Millisecond) // what comes sooner is taken for the same interrupt
	second := time.Now()
	interrupt()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.HasSuffix(log.String(), "interrupted\n") {
		t.Errorf("%v: %s", err, log)
	}
	if took := time.Since(second); took > 10*time.Second {
		t.Errorf("it took %s after the second interrupt", took)
	}
	clitest.CheckGone(t, children)
}

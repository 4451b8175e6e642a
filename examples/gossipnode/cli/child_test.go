package cli

import (
	"os/exec"
	"runtime"
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

// A child that was killed is told from one that failed.
func TestAKilledChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals: who was killed looks as one that failed")
	}
	killed := exec.Command("sleep", "60")
	if err := killed.Start(); err != nil {
		t.Skipf("no program \"sleep\" here to stand for a peer that is killed: %v", err)
	}
	_ = killed.Process.Kill()
	if end := endOf(killed.Wait()); !end.Killed || end.Err == nil {
		t.Errorf("killed: %+v", end)
	}
	if end := endOf(exec.Command("sleep", "never").Run()); end.Killed || end.Err == nil {
		t.Errorf("failed: %+v", end)
	}
	if end := endOf(nil); end.Killed || end.Err != nil {
		t.Errorf("done: %+v", end)
	}
}

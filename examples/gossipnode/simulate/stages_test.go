package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestSimulateStages: the same seed gives the same, all micro-batches are accounted for, and one codec sends less than another.
func TestSimulateStages(t *testing.T) {
	args := small(t, "--model", "mlp", "--batch", "24", "--peers", "4", "--stages", "2", "--slow", "2=3", "--crash", "3@300ms", "--arrive", "3@600ms", "--step-time", "100ms")
	line, r := simulateOnce(t, args...)
	if again, _ := simulateOnce(t, args...); again != line {
		t.Errorf("the same seed gave\n%s\nand\n%s", line, again)
	}
	if len(r.Stages) != 2 || r.MicroBatches == nil || r.PeersLost != 1 || r.TestAccuracy.Mean < 0.5 {
		t.Fatalf("%s", line)
	}
	all, parameters := []MicroBatches{*r.MicroBatches}, 0
	for _, s := range r.Stages {
		all, parameters = append(all, s.MicroBatches), parameters+s.Parameters
		if s.Busy <= 0 || s.Busy > 1 {
			t.Errorf("a stage with %d holders is busy for %v of the time", s.Holders, s.Busy)
		}
	}
	if r.Stages[0].Holders != 3 || r.Stages[1].Holders != 1 { // nearly all the work is in the first
		t.Errorf("who came did not take the stage that all wait for: %+v", r.Stages)
	}
	for _, m := range all {
		if m.Done == 0 || m.Came != m.Done+m.Dropped+m.UnderWay {
			t.Errorf("%+v", m)
		}
	}
	if parameters != 784*256+256+256*10+10 {
		t.Errorf("the stages have %d parameters", parameters)
	}
	if want := uint64(2 * 75); r.Steps != want { // three passes of 600 pictures in batches of 24, in each stage
		t.Errorf("%d steps, want %d", r.Steps, want)
	}
	_, coded := simulateOnce(t, append(args, "--activations", "int8")...)
	if coded.BytesSent >= r.BytesSent {
		t.Errorf("int8 sends %d bytes, raw %d", coded.BytesSent, r.BytesSent)
	}
}

func TestSimulateStagesUsage(t *testing.T) {
	for line, want := range map[string]string{
		"--peers 2 --stages 3":                        "there are 2 peers, and each stage needs one",
		"--peers 4 --stages 3":                        "3 stages of 2 parts: want 1 to 2", // of mlp
		"--peers 4 --stages 2 --attack 1=noise,3":     "leave out --attack",
		"--peers 4 --stages 2 --strategy dpsgd":       "leave out --strategy dpsgd",
		"--peers 4 --stages 2 --activations nonsense": "--activations",
		"--paging 40":                                 "want MB,MBPS",
		"--paging 0,100":                              "want MB,MBPS",
		`--stages [{"kind":"impute"}]`:                "files of stages prepare rows of tables",
	} {
		code, _, text := try(append([]string{"simulate", "--model", "mlp"}, strings.Fields(line)...)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
}

// TestALostStageEndsTheRun with an error that names it.
func TestALostStageEndsTheRun(t *testing.T) {
	code, _, text := try(append([]string{"simulate"}, small(t, "--model", "mlp", "--peers", "2", "--stages", "2", "--crash", "1@50ms", "--step-time", "1s")...)...)
	if code != cli.ExitFailed || !strings.Contains(text, "stage 2 of 2 has no members any more") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestPaging: what a model takes beyond the memory of a peer goes out and comes back in each step; its stages take less.
func TestPaging(t *testing.T) {
	args := small(t, "--model", "mlp", "--peers", "2", "--points", "0", "--jitter", "0", "--step-time", "100ms")
	_, free := simulateOnce(t, args...)
	_, paged := simulateOnce(t, append(args, "--paging", "3,10")...)
	steps := float64(free.Steps / 2)
	bytes := 4 * (5*203530.0 + 10*float64(784+2*256+10))
	if more, want := (paged.Seconds-free.Seconds)/steps, 2*(bytes-3e6)/10e6; more < 0.95*want || more > 1.1*want {
		t.Errorf("a step takes %v s longer, want about %v", more, want)
	}
	if (paging{}).takes(1e12) != 0 || (paging{memory: 10, rate: 1}).takes(9) != 0 || (paging{memory: 10, rate: 1}).takes(12) != 4*time.Second {
		t.Error("what is beyond goes out and comes back once")
	}
}

package simulate

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/tensor"
)

// small are flags of a simulation that takes a moment.
func small(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"--dataset", "mnist", "--data", clitest.Pictures(t, 600, 100), "--model", "softmax", "--epochs", "3", "--batch", "10",
	}, more...)
}

// wall is the one field that may differ.
var wall = regexp.MustCompile(`"wall_seconds":[0-9.e+-]+`)

// simulateOnce runs simulate --json, and gives its line without wall_seconds.
func simulateOnce(t *testing.T, args ...string) (line string, r Result) {
	t.Helper()
	code, out, stderr := try(append([]string{"simulate", "--json"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Count(out, "\n") != 1 || !wall.MatchString(out) {
		t.Errorf("not one line of JSON with wall_seconds: %s", out)
	}
	return wall.ReplaceAllString(out, `"wall_seconds":0`), r
}

// TestSimulateIsDeterministic compares two runs of a seed byte by byte.
func TestSimulateIsDeterministic(t *testing.T) {
	args := small(t, "--peers", "8", "--slow", "2=10", "--loss", "0.01", "--codec", "lattice6+4", "--crash", "3@30ms", "--arrive", "3@60ms", "--attack", "5=noise,3")
	one, r := simulateOnce(t, args...)
	two, _ := simulateOnce(t, args...)
	if one != two {
		t.Errorf("the same seed gave\n%s\nand\n%s", one, two)
	}
	if other, _ := simulateOnce(t, append(args, "--seed", "2")...); other == one {
		t.Error("another seed makes no difference")
	}
	if r.Peers != 8 || r.PeersLost != 1 || r.Exchanges == 0 || r.Steps != 180 || r.Events == 0 || len(r.Curve) != defaultPoints {
		t.Errorf("the result is %+v", r)
	}
	if r.TestAccuracy.Mean < 0.5 {
		t.Errorf("nothing was learned: %v", r.TestAccuracy)
	}
}

// TestSimulateNamesWhatRoundsAlike runs a seed in processes that may use fewer and fewer of
// the processor's instructions: the result names those that are in use, the vector
// instructions come to the same, and so do the ways to go without.
func TestSimulateNamesWhatRoundsAlike(t *testing.T) {
	args := append([]string{"simulate", "--json", "--points", "0"}, small(t, "--peers", "4", "--model", "mlp", "--codec", "lattice6+4", "--epochs", "1")...)
	digests := make(map[string]string) // by vector instructions, or none
	for _, c := range []struct{ without, arithmetic string }{
		{"", runtime.GOARCH + " " + tensor.Instructions()},
		{"cpu.avx512f=off", ""}, {"cpu.avx2=off", runtime.GOARCH + " go"}, {"cpu.fma=off", runtime.GOARCH + " go"},
	} {
		cmd := clitest.Command(t, 3*time.Minute, args...)
		cmd.Env = append(cmd.Env, "GODEBUG="+c.without)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("without %q: %v", c.without, err)
		}
		var r Result
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		t.Logf("without %q: %s, %.16s", c.without, r.Arithmetic, r.Digest)
		if c.arithmetic != "" && r.Arithmetic != c.arithmetic {
			t.Errorf("without %q: arithmetic %q, want %q", c.without, r.Arithmetic, c.arithmetic)
		}
		class := strings.NewReplacer("avx512", "vectors", "avx2", "vectors").Replace(r.Arithmetic)
		if before, known := digests[class]; known && before != r.Digest {
			t.Errorf("without %q: %s gives another result than before", c.without, r.Arithmetic)
		}
		digests[class] = r.Digest
	}
}

// TestStrategiesAreDeterministic compares two runs of each strategy, whose gradients are
// computed by several goroutines.
func TestStrategiesAreDeterministic(t *testing.T) {
	args := small(t, "--peers", "6", "--slow", "2=3", "--points", "2")
	for _, strategy := range settings.Strategies() {
		line := append(args[:len(args):len(args)], "--strategy", strategy)
		if (settings.StrategySettings{Strategy: strategy}).Local() {
			line = append(line, "--every", "10")
		}
		one, r := simulateOnce(t, line...)
		if two, _ := simulateOnce(t, line...); one != two {
			t.Errorf("%s: the same seed gave\n%s\nand\n%s", strategy, one, two)
		}
		if r.Steps != 180 || (r.Exchanges == 0) != (strategy == settings.StrategyAlone) {
			t.Errorf("%s: %+v", strategy, r)
		}
	}
}

// TestSimulateFields holds the names of the contract, local's and two more.
func TestSimulateFields(t *testing.T) {
	line, r := simulateOnce(t, small(t, "--peers", "4", "--evaluate", "2", "--points", "0", "--target", "0.3")...)
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	const contract = "peers strategy codec dataset model steps seconds test_accuracy loss consensus_distance exchanges refused failed " +
		"in_doubt peers_lost join_seconds connections_max bytes_sent bits_per_parameter resumed_step events wall_seconds"
	for _, name := range strings.Fields(contract) {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %s in %s", name, line)
		}
	}
	if b := float64(r.BitsPerParameter); b < 32 || b > 33 {
		t.Errorf("%g bits a parameter, raw", b)
	}
	if math.Abs(r.Seconds-0.45) > 0.05 {
		t.Errorf("%g s for 45 steps of 10 ms", r.Seconds)
	}
	if r.TargetSeconds == nil {
		t.Error("the target was not seen")
	}
}

// TestSimulateUntil: the result says what ended the run, and how good its best model was, as that of local does.
func TestSimulateUntil(t *testing.T) {
	_, whole := simulateOnce(t, small(t, "--step-time", "50ms")...)
	_, r := simulateOnce(t, small(t, "--step-time", "50ms", "--until", "accuracy=0.3")...)
	if whole.StoppedBy != "epochs" || whole.BestAccuracy != nil || r.StoppedBy != "accuracy" || r.BestAccuracy == nil || *r.BestAccuracy < 0.3 || r.Seconds >= whole.Seconds {
		t.Errorf("stopped by %s and %s after %g s and %g s, best %v", whole.StoppedBy, r.StoppedBy, whole.Seconds, r.Seconds, r.BestAccuracy)
	}
	if code, _, errs := try(append([]string{"simulate"}, small(t, "--until", "accuracy=3")...)...); code != cli.ExitUsage || !strings.Contains(errs, "until") {
		t.Errorf("an accuracy of 3: code %d, %s", code, errs)
	}
}

// TestSimulateReplays records a world, trains in it with another codec, and with none.
func TestSimulateReplays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "world.jsonl")
	args := small(t, "--peers", "6", "--slow", "1=4", "--leave", "2@50ms", "--points", "0")
	recorded, first := simulateOnce(t, append(args, "--record", file)...)
	replay := append(small(t, "--points", "0"), "--replay", file)
	if again, _ := simulateOnce(t, replay...); again != recorded {
		t.Errorf("the replay of a world came to\n%s\nnot to\n%s", again, recorded)
	}
	_, coded := simulateOnce(t, append(replay, "--codec", "int8")...)
	_, alone := simulateOnce(t, append(replay, "--strategy", "alone")...)
	if coded.Peers != 6 || coded.BytesSent > first.BytesSent/3 || coded.PeersLost != 1 || alone.BytesSent != 0 || alone.Seconds != first.Seconds {
		t.Errorf("recorded %+v\nas int8 %+v\nalone %+v", first, coded, alone)
	}
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := try(append([]string{"simulate"}, replay...)...); code != cli.ExitUsage || !strings.Contains(stderr, "no recording") {
		t.Errorf("what is no recording: exit code %d, %s", code, stderr)
	}
}

// TestSimulateUsage: each wrong flag is named with what it wants.
func TestSimulateUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--peers 0":                      "--peers 0: want 1 to",
		"--slow 16=2":                    `--slow "16=2": want P=FACTOR`,
		"--slow 3":                       `--slow "3": want P=FACTOR`,
		"--slow-link 3=2 --link 0,1":     "has no limit",
		"--link fast":                    "want MBPS,MS",
		"--link 1e-11,1":                 "at least 1e-06 Mbit/s",
		"--slow-link 3=2e5 --link 0.1,1": "--slow-link 3=200000: of --link 0.1,1 that leaves less than 1e-06 Mbit/s",
		"--sites 2 --across 1e-7,1":      "at least 1e-06 Mbit/s",
		"--crash 3":                      `--crash "3": want P@TIME`,
		"--attack 3=white,1":             "want P=LIE,STRENGTH",
		"--jitter 1":                     "--jitter 1: want a share",
		"--loss -1":                      "--loss -1: want a probability",
		"--step-time 0s":                 "--step-time 0s: want a time",
		"--evaluate 0":                   "--evaluate 0",
		"--target 2":                     "--target 2: want an accuracy",
		"--codec auto":                   "name a codec",
		"--dataset csv --data x":         "tables are for run and local",
		"--replay nowhere":               "--replay",
		"--strategy best":                "--strategy",
		"--strategy diloco --every 64 --steps 20 --peers 2": "each of 2 peers makes 20 steps",
		"--slow 1=2 --slow x=1 --loss 2":                    "--loss 2",
	} {
		code, _, stderr := try(append([]string{"simulate"}, strings.Fields(args)...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("simulate %s: exit code %d, %q, want %q in it", args, code, stderr, want)
		}
	}
}

// TestSkewedPartsAreLearned: two peers whose parts of the data differ agree on all of it at
// the end, without a merge, if they exchange each five steps; alone they do not. It is in
// virtual time, where a busy machine leaves out no exchange.
func TestSkewedPartsAreLearned(t *testing.T) {
	args := append([]string{
		"--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--model", "softmax", "--batch", "10", "--lr", "0.01",
		"--peers", "2", "--steps", "400", "--every", "5", "--points", "0",
	}, "--shard", "dirichlet=1", "--codec", "bf16", "--optimizer", "adamw", "--schedule", "step")
	_, r := simulateOnce(t, args...)
	if r.TestAccuracy.Min < 0.95 || r.TestAccuracy.Max-r.TestAccuracy.Min > 0.02 {
		t.Errorf("accuracy %+v, want at least 0.95 everywhere", r.TestAccuracy)
	}
	if _, alone := simulateOnce(t, append(args, "--strategy", "alone")...); alone.TestAccuracy.Min > 0.9 {
		t.Errorf("alone each has learned all of it too: %+v", alone.TestAccuracy)
	}
}

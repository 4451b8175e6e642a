package bench

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/exchange"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// smallExchange are the flags of a measurement that takes no time.
func smallExchange(more ...string) []string {
	return append([]string{"bench", "exchange", "--parameters", "5000", "--slice", "512", "--rounds", "7"}, more...)
}

// TestExchange shows that every figure that is promised is there, and is one
// that such a measurement can have. Times themselves are the machine's affair.
func TestExchange(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"raw", "bf16"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			var out, logged bytes.Buffer
			args := smallExchange("--codec", codec, "--json")
			if codec != "raw" { // seconds of profiling, of which those of one codec show all
				args = append(args, "--stages")
			}
			cmd := command(t, args...)
			cmd.Stdout, cmd.Stderr = &out, &logged
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &logged)
			}
			var r exchange.Result
			fields := clitest.OneLine(t, out.Bytes(), &r)
			for _, name := range strings.Fields("parameters codec lanes seconds raw_seconds raw_tcp_seconds raw_libp2p_seconds naive_seconds " +
				"ratio_to_raw_tcp ratio_to_raw_libp2p cpu_seconds bytes allocs_per_slice") {
				if _, ok := fields[name]; !ok {
					t.Errorf("no field %s in %s", name, &out)
				}
			}
			checkExchange(t, r, codec)
			if !strings.Contains(logged.String(), "Congestion control") {
				t.Errorf("no table on standard error:\n%s", &logged)
			}
		})
	}
}

func checkExchange(t *testing.T, r exchange.Result, codec string) {
	t.Helper()
	for name, value := range map[string]float64{
		"seconds": r.Seconds, "raw": r.RawSeconds, "tcp": r.RawTCPSeconds, "libp2p": r.RawLibp2pSeconds,
		"naive": r.NaiveSeconds, "to tcp": r.RatioToRawTCP, "to libp2p": r.RatioToRawLibp2p, "naive ratio": r.NaiveRatio,
		"exchanges": r.ExchangesPerSecond, "ping-pong": r.PingPongPerSecond,
		"slice": r.SliceArithmetic, "longest slice": r.SliceArithmeticLongest,
	} {
		if !(value > 0 && value < 1e9) {
			t.Errorf("%s is %v", name, value)
		}
	}
	width := map[string]uint64{"raw": 4, "bf16": 2}[codec]
	if least := 2 * width * 5000; r.Bytes < least || r.Bytes > least*3/2 {
		t.Errorf("%d bytes, want %d and the headers", r.Bytes, least)
	}
	if (codec == "raw") != (r.RawSeconds == r.Seconds) {
		t.Errorf("%s took %v s, raw %v s", codec, r.Seconds, r.RawSeconds)
	}
	if r.Parameters != 5000 || r.Codec != codec || r.Lanes != 1 || r.Rounds != 7 || r.Slices != 10 || r.SliceValues != 512 || r.Window != 0 ||
		r.GOMAXPROCS < 1 || r.Security != "tls" || r.Muxer != "yamux" || r.CPU == "" || r.CongestionControl == "" || r.AllocsPerSlice < 0 {
		t.Errorf("%+v", r)
	}
	if runtime.GOOS == "linux" && (r.CPUSeconds <= 0 || r.RawLibp2pCPUSeconds <= 0 || r.PeakBytes[0] < 1<<20 || r.PeakBytes[1] < 1<<20) {
		t.Errorf("processor time %v s and %v s, peak memory %v", r.CPUSeconds, r.RawLibp2pCPUSeconds, r.PeakBytes)
	}
	spent := 0.0
	for _, s := range r.Stages {
		spent += s.Active + s.Passive
	}
	if want := map[string]int{"bf16": 9}[codec]; len(r.Stages) != want || spent > 0 != (want > 0) {
		t.Errorf("stages: %+v", r.Stages)
	}
	if want := uint64(16*5000 + 64<<20); r.PeakBudget != want {
		t.Errorf("budget of %d bytes, want %d", r.PeakBudget, want)
	}
	if len(r.Blocked) != 2 || r.Blocked[0].Side != "active" || r.Blocked[1].Side != "passive" {
		t.Fatalf("blocked: %+v", r.Blocked)
	}
	for _, d := range r.Blocked {
		if d.Steps < 100 || d.Exchanges == 0 || d.P99Seconds > d.LongestSeconds || d.LongestSeconds > r.BlockedLongest || d.P99Seconds > r.BlockedP99 {
			t.Errorf("blocked: %+v", d)
		}
	}
}

// TestBrokenOff shows that a measurement ends with exit code 1, with no figure
// and no process left, whichever of its two processes is ended, when and how.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to find the child")
	}
	const early, late = "Measuring", "Taking turns with the references."
	for _, c := range []struct {
		name, when string
		end        func(parent, child *os.Process) error
		want       string // on standard error
	}{
		{"child killed", late, func(_, child *os.Process) error { return child.Kill() }, "the other process has ended: signal: killed\n"},
		{"child killed at once", early, func(_, child *os.Process) error { return child.Kill() }, "the other process has ended: signal: killed\n"},
		{"interrupted", late, func(parent, _ *os.Process) error { return parent.Signal(os.Interrupt) }, "gossipnode: interrupted\n"},
		{"interrupted at once", early, func(parent, _ *os.Process) error { return parent.Signal(os.Interrupt) }, "gossipnode: interrupted\n"},
		{"parent killed", late, func(parent, _ *os.Process) error { return parent.Kill() }, ""},
		{"parent killed at once", early, func(parent, _ *os.Process) error { return parent.Kill() }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd, children, rest := startExchange(t, c.when)
			child, err := os.FindProcess(children[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := c.end(cmd.Process, child); err != nil {
				t.Fatal(err)
			}
			said := rest() // until the end of the process, and before Wait closes the pipe
			err = cmd.Wait()
			if out := cmd.Stdout.(*bytes.Buffer); err == nil || out.Len() > 0 || !strings.HasSuffix(said, c.want) {
				t.Errorf("ended with %v, standard output %q, standard error:\n%s\nwant %q", err, out, said, c.want)
			}
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitFailed && c.want != "" {
				t.Errorf("exit code %d", code)
			}
			clitest.CheckGone(t, children)
		})
	}
}

// startExchange starts a measurement that takes its time, and waits until it says a
// word and has a child. Rest waits for the last line that it says.
func startExchange(t *testing.T, word string) (cmd *exec.Cmd, children []int, rest func() string) {
	t.Helper()
	cmd = command(t, smallExchange("--rounds", "1000")...)
	cmd.Stdout = new(bytes.Buffer)
	logged, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := clitest.ScanLines(t, logged)
	for line := range lines {
		if strings.Contains(line, word) {
			break
		}
	}
	clitest.Eventually(t, "the other process starts", func() bool {
		children = clitest.ChildrenOf(t, cmd.Process.Pid)
		return len(children) == 1
	})
	return cmd, children, func() (last string) {
		for line := range lines {
			last = line + "\n"
		}
		return last
	}
}

// TestWrongUse shows that what is wrong with the command line is said.
func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"bench bogus", `unknown command "bogus": want one of exchange, step`},
		{"bench exchagne", "did you mean exchange?"},
		{"bench exchange word", `exchange takes flags only, not "word"`},
		{"bench exchange --parameters 0", "--parameters 0: want 1 to "},
		{"bench exchange --parameters many", `--parameters "many": want a whole number`},
		{"bench exchange --codec bogus", `--codec "bogus": want raw`},
		{"bench exchange --lanes 9", "--lanes 9: want 1 to 8"},
		{"bench exchange --rounds 6", "--rounds 6: want 7 to "},
		{"bench exchange --slice 65537", "--slice 65537: want 1 to 65536"},
		{"bench exchange --lanes 0", "--lanes 0: want"},
		{"bench exchange --config nowhere.yaml", "nowhere.yaml: no such file"},
		{"bench step --model bogus", `--model "bogus": want mlp`},
		{"bench step --batch 0", "--batch 0: want 1 to "},
		{"bench step --rounds 2", "--rounds 2: want 3 to "},
		{"bench step mlp", `step takes flags only, not "mlp"`},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, out, err := program.Try(strings.Fields(c.line)...)
			if code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
				t.Errorf("exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", code, out, err, cli.ExitUsage, c.want)
			}
		})
	}
}

// TestHelp shows that every command has help with an example.
func TestHelp(t *testing.T) {
	for _, command := range []string{"bench", "bench exchange", "bench step"} {
		code, out, err := program.Try(append(strings.Fields(command), "--help")...)
		if code != cli.ExitDone || err != "" || !strings.Contains(out, "Examples:\n  gossipnode "+command) || strings.Contains(out, "--partner") {
			t.Errorf("%q --help: exit code %d, standard error %q, standard output:\n%s", command, code, err, out)
		}
	}
}

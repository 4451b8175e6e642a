package local

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// Rows of a table travel from holders that have prepared them together with those that train and hold none. The models are merged, as
// on a busy machine all rows may be given out before the second process asks for one.
func TestATableTravels(t *testing.T) {
	t.Parallel()
	data, dir := sums(t, 900), t.TempDir()
	args := []string{"local", "--json", "--dataset=csv", "--data", data, "--target", "total>0", "--split=row:7/10", "--holders=2", "--peers=2", "--shard=by=half", "--checkpoint", dir, "--epochs=20", "--final=merge"}
	for range 2 { // the second time all have their rows prepared
		code, out, stderr := program.Try(args...)
		if code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var r result.Result
		clitest.LastLine(t, out, &r)
		if r.AUC == nil || !(r.AUC.Min > 0.9) || r.Travelled == nil || r.Holders != 2 || r.HandedOut < 20*630 || r.HandedOut != r.TrainedSamples+r.LostSamples {
			t.Errorf("%s", out)
		}
		for _, member := range []string{"peer-0", "peer-1"} {
			if err := os.RemoveAll(filepath.Join(dir, member)); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, "--hops=2", "--in-process", "--pipeline", filepath.Join(dir, "pipeline.json"))
	}
}

// sums are rows of which b has a few missing, and "late" is whether more comes together than 1
// in a, b and a number for each color.
func sums(t *testing.T, rows int) string {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	text.WriteString("a,b,color,half,note,total\n")
	for i := range rows {
		a, b, color := draw.NormFloat64()*30, draw.NormFloat64(), draw.IntN(3)
		shown := fmt.Sprintf("%.3f", b)
		if i%50 == 7 {
			shown, b = "", 0
		}
		fmt.Fprintf(&text, "%.3f,%s,%s,%s,n%d,%.3f\n", a, shown, []string{"red", "green", "blue"}[color], []string{"left", "right"}[i%2], i, a/30+b+2*float64(color-1))
	}
	text.WriteString("1,2,red,left,n,3,4\n1,2,red,left,n,\n") // damaged, and without a target
	return clitest.WriteFile(t, "sums.csv", text.String())
}

// A model on a table learns from peers of which each sees other rows: as processes, and as
// goroutines that read each row once. What the rows are prepared by is kept, and is what it was.
func TestTrainsOnATable(t *testing.T) {
	t.Parallel()
	data, dir := sums(t, 900), t.TempDir()
	for _, args := range [][]string{
		{"--peers=2", "--shard=by=half", "--checkpoint", dir},
		{"--peers=3", "--in-process"},
		{"--peers=3", "--in-process", "--model=softmax", "--pipeline", filepath.Join(dir, "pipeline.json")},
	} {
		args = append([]string{"local", "--json", "--dataset=csv", "--data", data, "--target", "total>0", "--split=row:7/10"}, args...)
		code, out, stderr := program.Try(args...)
		if code != cli.ExitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
		var r result.Result
		clitest.LastLine(t, out, &r)
		if a := r.AUC; a == nil || !(a.Min > 0.9 && a.Min <= a.Mean && a.Mean <= a.Max && a.Max <= 1) || r.Dataset != "csv" || !(r.TestAccuracy.Mean > 0.8) {
			t.Errorf("%q: %s", args, out)
		}
		for _, said := range []string{"1 are left out, of which total is missing; columns left out, with more than 256 values (--max-values): note", "set aside: 1 of 902"} {
			if strings.Count(stderr, said) != 1 {
				t.Errorf("%q: not once %q: %s", args, said, stderr)
			}
		}
		if strings.Contains(stderr, "warn") {
			t.Errorf("%q: %s", args, stderr)
		}
	}
	code, _, stderr := program.Try("local", "--dataset=csv", "--data", data, "--target", "a>0", "--drop", "note,total", "--in-process", "--pipeline", filepath.Join(dir, "pipeline.json"))
	if code != cli.ExitUsage || !strings.Contains(stderr, "of the target total>0, not of a>0") {
		t.Errorf("another target: exit code %d: %s", code, stderr)
	}
}

// What is wrong with a table or its flags is told as fit tells it, by the peer that has it.
func TestTableSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	data := sums(t, 200)
	const flock = "--peers=3" // instead of one peer, which is quicker
	for name, c := range map[string]struct {
		args []string
		says []string
		code int
	}{
		"no target":           {nil, []string{"--target is missing"}, cli.ExitUsage},
		"no such target":      {[]string{"--target=totl>0"}, []string{"totl", "total"}, cli.ExitConfig},
		"one class":           {[]string{"--target=total>1000", flock}, []string{"one class", "total>1000"}, cli.ExitConfig},
		"a number":            {[]string{"--target=total"}, []string{"--target", "comparison"}, cli.ExitUsage},
		"no such column":      {[]string{"--target=total>0", "--drop=colour"}, []string{"--drop colour", `"color"`}, cli.ExitUsage},
		"no such split":       {[]string{"--target=total>0", "--split=half"}, []string{"--split"}, cli.ExitUsage},
		"no such shard":       {[]string{"--target=total>0", "--shard=dirichlet=1"}, []string{"--shard"}, cli.ExitUsage},
		"no rows for one":     {[]string{"--target=total>0", "--shard=by=half", flock}, []string{"no rows that train", "fewer --peers"}, cli.ExitFailed},
		"a shard of nothing":  {[]string{"--target=total>0", "--shard=by=colour", flock}, []string{"colour"}, cli.ExitConfig},
		"a model of pictures": {[]string{"--target=total>0", "--model=cnn"}, []string{"--model cnn", "mlp"}, cli.ExitUsage},
		"no such file":        {[]string{"--target=total>0", "--data=nowhere.csv"}, []string{"nowhere.csv"}, cli.ExitConfig},
		"pictures":            {[]string{"--target=total>0", "--dataset=glyphs"}, []string{"--target", "--dataset csv"}, cli.ExitUsage},
		"too few rows":        {[]string{"--target=total>0", "--batch=1000"}, []string{"batch of 1000"}, cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"local", "--strategy=alone", "--peers=1", "--in-process", "--dataset=csv", "--data", data}
			if slices.Contains(c.args, flock) {
				args[1] = "--strategy=adpsgd"
			}
			code, _, stderr := program.Try(append(args, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
			for _, want := range c.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q does not say %q", stderr, want)
				}
			}
		})
	}
}

// The fault that counts is that of the peer which has it, which is let tell it, also when others
// tell of it first.
func TestFaultIsThatOfItsPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			f.tell(watch.Report{Kind: watch.ReportStarted, Peer: fmt.Sprint(f.number), Addresses: []string{"a"}})
			if f.number > 0 {
				f.tell(watch.Report{Kind: watch.ReportFailed, Failure: "another member's rows", Code: cli.ExitFailed, Echo: true})
				return &supervise.End{}
			}
			select {
			case <-f.left:
				t.Error("the peer with the fault was asked to leave before it could tell it")
			case <-time.After(time.Second):
			}
			f.tell(watch.Report{Kind: watch.ReportFailed, Failure: "line 7 is torn", Code: cli.ExitConfig})
			return &supervise.End{}
		}}
		_, _, err := fly(t.Context(), l, nil)
		if err == nil || err.Error() != "peer 0: line 7 is torn" || cli.ExitCode(err) != cli.ExitConfig {
			t.Errorf("%v, exit code %d", err, cli.ExitCode(err))
		}
	})
}

var flights = flag.Bool("flights", false, "train on New York's flights, which takes a minute")

// Four peers, each with airlines of its own, together tell late flights by 0.755 at least.
func TestFlights(t *testing.T) {
	if !*flights {
		t.Skip("takes a minute: give -flights")
	}
	data := filepath.Join("..", "..", "..", "..", "shared", "data", "flights", "flights.csv.gz")
	if _, err := os.Stat(data); err != nil {
		t.Skipf("there are no flights here: %v", err)
	}
	code, out, stderr := program.Try("local", "--json", "--dataset=csv", "--data", data, "--target=arr_delay>15", "--drop=dep_delay", "--split=row:7/10", "--shard=by=carrier")
	var r result.Result
	if clitest.LastLine(t, out, &r); code != cli.ExitDone || r.Peers != 4 || r.AUC.Min < 0.755 {
		t.Errorf("exit code %d, %s: %s", code, out, stderr)
	}
	t.Log(out)
}

package workload

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhatAMemberSaysTakesNoMemory: a size that a member says the run has is held against this
// machine's memory before anything is made of it; what the user gives himself is his.
func TestWhatAMemberSaysTakesNoMemory(t *testing.T) {
	const memory = 16 << 30
	for name, c := range map[string]struct {
		args    []string
		refused bool
	}{
		"the defaults":   {nil, false},
		"a small gpt":    {[]string{"--dataset=gosource", "--model=gpt"}, false},
		"a large gpt":    {[]string{"--dataset=gosource", "--model=gpt", "--layers=64", "--width=4096"}, true},
		"long windows":   {[]string{"--dataset=gosource", "--model=gpt", "--layers=8", "--context=8192", "--heads=128"}, true},
		"large pictures": {[]string{"--dataset=images", "--size=1024x1024"}, true},
		"large batches":  {[]string{"--batch=9000000000000000000"}, true},
	} {
		var s settings.Settings
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := checkMemory(s, 0, memory); err != nil {
			t.Errorf("%s, of the user's: %v", name, err)
		}
		s.TakenSize = true
		err := checkMemory(s, 0, memory)
		if (err != nil) != c.refused || err != nil && (cli.ExitCode(err) != cli.ExitConfig || !strings.Contains(err.Error(), "this machine has 17.2 GB")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABatchOfATableTakesNoMemory: where the strategy divides batches among peers, no row is counted before
// a batch is filled, so one that a member says is held against the memory too.
func TestABatchOfATableTakesNoMemory(t *testing.T) {
	var s settings.Settings
	s.Register(pflag.NewFlagSet("run", pflag.ContinueOnError))
	s.Dataset, s.Batch, s.Balance, s.Strategy = "csv", 1<<30, true, "dpsgd"
	set, err := dataset.NewRows(make(tensor.Vector, 4), make([]uint8, 4), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	data := &dataset.Data{Train: set, HeldOut: set}
	for _, taken := range []bool{false, true} {
		s.TakenSize = taken
		if _, err := OfTable(s, rows.Share{}, nil, data, make([]byte, 32)); (err != nil) != taken || taken && cli.ExitCode(err) != cli.ExitConfig {
			t.Errorf("taken over: %v: %v", taken, err)
		}
	}
}

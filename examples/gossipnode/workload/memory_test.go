package workload

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
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
		if err := affordable(s, memory); err != nil {
			t.Errorf("%s, of the user's: %v", name, err)
		}
		s.TakenSize = true
		err := affordable(s, memory)
		if (err != nil) != c.refused || err != nil && (cli.ExitCode(err) != cli.ExitConfig || !strings.Contains(err.Error(), "this machine has 17.2 GB")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

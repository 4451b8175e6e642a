package main

import (
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// maxFlagText is how long the help of a flag may be: two lines of a terminal. What needs more is in
// docs.
const maxFlagText = 160

// TestFlagsAreToldInTwoLines looks at every flag of every command, hidden ones too.
func TestFlagsAreToldInTwoLines(t *testing.T) {
	commands, flags := 0, 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		commands++
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			if n := utf8.RuneCountInString(f.Usage); n > maxFlagText {
				t.Errorf("%s --%s has %d letters, at most %d: %s", c.CommandPath(), f.Name, n, maxFlagText, f.Usage)
			}
		})
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot(cli.Streams{}))
	if commands < 20 || flags < 200 {
		t.Errorf("%d flags of %d commands looked at: some were not found", flags, commands)
	}
}

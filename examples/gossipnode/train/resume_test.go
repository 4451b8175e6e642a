package train

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestInterruption: whoever interrupts a peer is told what that costs; of a holder, which learns nothing, no model.
func TestInterruption(t *testing.T) {
	var trains, holds settings.Settings
	holds.Hold = true
	for want, s := range map[string]settings.Settings{"the model would have been kept": trains, "get no more of what this one held": holds} {
		if err := Interruption(s, cli.ErrInterrupted); !errors.Is(err, cli.ErrInterrupted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

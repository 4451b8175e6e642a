package peer

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/sums"
)

// TestWhomATrainersSumWaitsForIsLogged: what the machine of an algorithm in lock-step notes of its sums, the log says.
func TestWhomATrainersSumWaitsForIsLogged(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	d := &driver{log: zap.New(core), steps: new(training)}
	fact := sums.Fact{What: sums.Waits, Sum: "step 1", Who: []sums.ID{"slow"}, Why: "to come"}
	d.carryOutCollective(collective.Action{Action: averaging.Action{Kind: collective.Note}, Fact: &fact}, conversations.Key{})
	if lines := logged.FilterMessage(sums.Waits).All(); len(lines) != 1 || lines[0].ContextMap()["peer"] != "slow" || lines[0].ContextMap()["sum"] != "step 1" {
		t.Errorf("it says %v", logged.All())
	}
}

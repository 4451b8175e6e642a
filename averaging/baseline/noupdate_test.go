package baseline

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// TestARunWithoutAnUpdateSaysSo shows that people hear of a run of DiLoCo that was too short for an update, once.
func TestARunWithoutAnUpdateSaysSo(t *testing.T) {
	for _, updates := range []int{0, 1} {
		m, err := NewDiLoCo(Config{Self: "a"}, Outer{Every: 3})
		if err != nil {
			t.Fatal(err)
		}
		d := &driven{t: t, machine: m}
		d.view("a")
		var said []collective.Action
		handle := func(e collective.Event) {
			said = append(said, d.handle(e)...)
		}
		handle(collective.Event{Event: averaging.Event{Kind: averaging.StepDone}, Initial: true})
		if updates > 0 {
			handle(collective.Event{Event: averaging.Event{Kind: collective.GradientDone}, Samples: 3, Initial: true})
			handle(collective.Event{Event: averaging.Event{Kind: collective.Updated}})
		}
		for range 3 {
			handle(collective.Event{Event: averaging.Event{Kind: averaging.RunOver}})
		}
		notes := slices.DeleteFunc(said, func(a collective.Action) bool { return a.Kind != collective.Note || a.Fact.What != NoUpdate })
		if len(notes) != 1-updates {
			t.Errorf("after %d updates: %v", updates, notes)
		}
	}
}

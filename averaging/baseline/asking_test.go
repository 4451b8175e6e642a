package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// Who looks for a leader does not ask at once again whom it has asked: the answer would be
// asked about too, and so on without end.
func TestQuestionsAreNotAskedAtOnceAgain(t *testing.T) {
	for _, lineage := range []uint64{0, 5} {
		m, err := NewAllReduce(Config{Self: "a"})
		if err != nil {
			t.Fatal(err)
		}
		m.lineage = lineage
		d := &driven{t: t, machine: m}
		d.view("b", "a")
		d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
		if m.first() != "b" {
			t.Fatal("b is not the first in the order")
		}
		asked := 0
		for range 10 {
			for _, a := range d.told("b", word(wordNone, 0, lineage/5*7, 0)) { // b waits for nothing yet
				if a.Kind == averaging.Tell && a.Word.Kind == wordWho {
					asked++
				}
			}
			if m.leader != "" {
				break
			}
		}
		if asked > 1 {
			t.Errorf("lineage %d: it asks %d times in ten answers", lineage, asked)
		}
	}
}

package sums

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcript in testdata from what the machines do")

// TestTranscript shows one sum of five members, 10 ms apart, as a person reads it to learn what they say. The
// lines with # are kept.
func TestTranscript(t *testing.T) {
	const file = "../../testdata/transcripts/sums/01-five-members.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(want)) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	w := newWorld(t, 1, 5)
	w.delay, w.constant = 10*time.Millisecond, true
	tells := func(m *member, o Outcome) {
		fmt.Fprintf(&out, "%5s  %s to %s  %s\n", w.now, m.self, o.To, described(o))
		w.carry(m, o)
	}
	for _, m := range w.members {
		m.lie = tells
		m.calls = []Call{{Name: "x", Vector: []float64{1, 10, 100, 1000}, Least: 1, Timeout: time.Minute}}
		w.after(0, m.next)
	}
	w.run(time.Minute)
	for _, m := range w.members {
		fmt.Fprintf(&out, "%5s  %s has %v of %d\n", w.now, m.self, m.results[0].Vector, m.results[0].Peers)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if out.String() != string(want) {
		t.Errorf("%s differs; read the difference, then run go test ./internal/sums -run Transcript -rewrite\ngot:\n%s", file, out.String())
	}
}

// described is what is said, in words.
func described(o Outcome) string {
	if s := o.Share; s != nil {
		return fmt.Sprintf("SHARE of step %d: %v", s.Step, s.Values)
	}
	w := o.Message
	switch w.Kind {
	case wire.SumStatus:
		return fmt.Sprintf("STATUS %s, term %d, %d steps taken, answer to %d", [...]string{"waiting", "placed", "holding"}[w.Stage], w.Term, w.Rank/progressStep, w.Question)
	case wire.SumAsk:
		return fmt.Sprintf("ASK %d", w.Question)
	case wire.SumNone:
		return fmt.Sprintf("NONE, answer to %d", w.Question)
	case wire.SumPlace:
		return fmt.Sprintf("PLACE %d of %d, partners %s", w.Rank, w.Size, strings.Join(w.Partners, " "))
	case wire.SumCommit:
		return fmt.Sprintf("COMMIT of term %d", w.Term)
	}
	return fmt.Sprintf("%+v", *w)
}

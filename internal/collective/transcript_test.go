package collective_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata from what the peers do")

// scene is a sum of a, b and c, of whom b is the first in the order of members, and so coordinates.
type scene struct {
	file, comment string
	act           func(w *world)
}

// scenes are what a person reads to learn how numbers that replicas hold are summed.
var scenes = []scene{
	{"01-three", "Three sum 64 numbers each. b asks what the others know, and gives places: a and b are the core, which halve, and c hands each of them a half.\n" +
		"Who has all says so (holding), and once all do, b lets the sum count.", func(*world) {}},
	{"02-early", "What b tells a takes 10 ms, so a has no place yet when b and c send it their parts: it refuses, and asks for them again once it has loaded its own.", func(w *world) {
		w.slow[[2]topology.PeerID{"b", "a"}] = 9 * time.Millisecond
	}},
	{"03-a-participant-dies", "c dies in the middle: its transfers break off, and a and b make another attempt, each of its own part.", func(w *world) {
		w.at(7, func() { w.peer("c").dies(time.Millisecond) })
	}},
	{"04-the-coordinator-goes", "b dies when all have the sum, and before it says so. Then c coordinates, which asks a: nobody has used the sum, so c gives out places anew.", func(w *world) {
		w.at(10, func() { w.peer("b").dies(time.Millisecond) })
	}},
	{"05-unfit", "a cannot send what it holds, as where a codec has no such numbers: it leaves the sum to the others, who wait for it as long as they are patient.", func(w *world) {
		w.peer("a").unfit = true
	}},
	{"06-cancel", "a leaves in the middle of an attempt. The others make another when they have waited for it as long as they are patient.", func(w *world) {
		w.at(8, func() { w.peer("a").cancels() })
	}},
}

// at has something happen after so many milliseconds.
func (w *world) at(ms int, do func()) { w.queue.After(time.Duration(ms)*time.Millisecond, do) }

// TestTranscripts shows what peers that sum say, hand on and break off.
func TestTranscripts(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.file, func(t *testing.T) {
			path := filepath.Join("../../testdata/transcripts/summing", s.file+".txt")
			got := s.play(t)
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; read the difference, then run go test ./internal/collective -run Transcripts -rewrite\ngot:\n%s", path, got)
			}
		})
	}
}

func (s scene) play(t *testing.T) string {
	var out strings.Builder
	for line := range strings.Lines(s.comment) {
		fmt.Fprintf(&out, "# %s\n", strings.TrimSpace(line))
	}
	fmt.Fprintln(&out, "# What is told or sent takes 1 ms. a brings 1, b 8 and c 64. What is said again in time, and that it was heard, is left out.")
	w := newWorld(t, 1, 3, width)
	w.show = func(format string, args ...any) {
		fmt.Fprintf(&out, "%5.1f ms  %s\n", float64(w.queue.Now().Microseconds())/1e3, fmt.Sprintf(format, args...))
	}
	for _, p := range w.peers {
		p.calls = []string{"sum"}
		p.next()
	}
	s.act(w)
	w.queue.Run(2 * deadline)
	w.check([]string{"sum"})
	return out.String()
}

// partOf says what a transfer carries.
func partOf(t collective.Transfer) string {
	return fmt.Sprintf("part %d of %d, %s", t.Part, t.Parts, map[bool]string{true: "to be added", false: "in which all are added"}[t.Add])
}

// described is a word as transcripts show it. The lower bits of an attempt say whose it is.
func described(w collective.Message) string {
	s := w.Sum
	switch {
	case s == nil && w.Kind == collective.MessageAck:
		return "heard"
	case s == nil && w.Kind == collective.MessageRetry:
		return fmt.Sprintf("ready for attempt %d, again", w.Round>>16)
	case s.Kind == wire.SumStatus:
		return fmt.Sprintf("STATUS %s, attempt %d", [...]string{"waiting", "placed", "holding"}[s.Stage], s.Attempt>>16)
	case s.Kind == wire.SumPlace:
		return fmt.Sprintf("PLACE %d of %d in attempt %d, partners %s", s.Rank, s.Size, s.Attempt>>16, strings.Join(s.Partners, " "))
	}
	kind := map[wire.SumKind]string{wire.SumAsk: "ASK", wire.SumNone: "NONE", wire.SumDone: "DONE", wire.SumLeader: "LEADER", wire.SumLeft: "LEFT", wire.SumVoid: "VOID",
		wire.SumCommit: "COMMIT", wire.SumBroken: "BROKEN", wire.SumFault: "FAULT"}[s.Kind]
	return strings.TrimRight(fmt.Sprintf("%s, attempt %d %s %s", kind, s.Attempt>>16, s.Next, s.Detail), " ")
}

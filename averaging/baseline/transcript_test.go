package baseline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata from what the machines do")

// scene is a short play of peers a, b and c, of which a transcript shows one's part.
type scene struct {
	file, comment string
	machine       func(topology.PeerID) collective.Machine
	who           topology.PeerID
	slow          map[topology.PeerID]time.Duration // one whose steps do not take 10 ms
	act           func(w *world)
}

func scenes(t failer) []scene {
	ring := allReduce(t, baseline.Config{Deadline: 8 * time.Second})
	run := func(w *world) { w.queue.Run(time.Second / 10) }
	dies := func(id topology.PeerID, at time.Duration) func(w *world) {
		return func(w *world) {
			w.queue.Run(at)
			w.die(id, 10*time.Millisecond)
			w.queue.Run(at + 50*time.Millisecond)
		}
	}
	server := func(gate string) func(topology.PeerID) collective.Machine {
		return paramServer(t, baseline.Config{Deadline: 8 * time.Second}, gates(t)[gate])
	}
	neighbours := dpsgd(t, baseline.Config{Deadline: 8 * time.Second})
	return []scene{
		{"allreduce/01-coordinator", "The first peer in the view's order coordinates: it gives places, and lets all update.", ring, "b", nil, run},
		{"allreduce/02-member", "The same rounds as a member sees them.", ring, "a", nil, run},
		{"allreduce/03-a-death-in-mid-round", "c dies in the ring: the attempt breaks off, and a and b begin another of the same round.", ring, "b", nil, dies("c", 20*time.Millisecond)},
		{"allreduce/04-the-coordinator-dies", "The coordinator b dies before it lets the others update: the run halts.", ring, "c", nil, dies("b", 26*time.Millisecond)},
		{"allreduce/05-a-straggler", "c takes ten times as long: all wait for it, and nobody else.", ring, "b", map[topology.PeerID]time.Duration{"c": 100 * time.Millisecond}, func(w *world) { w.queue.Run(130 * time.Millisecond) }},
		{"paramserver/01-bsp-server", "b serves: one update of all pushes, then parameters to all.", server("bsp"), "b", nil, run},
		{"paramserver/02-bsp-worker", "The same rounds as a worker sees them.", server("bsp"), "a", nil, run},
		{"paramserver/03-a-death-in-mid-round", "c dies while b waits for it: the round is of those who are left.", server("bsp"), "b", nil, dies("c", 18*time.Millisecond)},
		{"paramserver/04-the-server-dies", "The server b dies: the run halts.", server("bsp"), "c", nil, dies("b", 46*time.Millisecond)},
		{"paramserver/05-ssp-straggler", "c takes ten times as long: with a staleness of 2, a and b get so far ahead and are held.", server("ssp"), "b", map[topology.PeerID]time.Duration{"c": 100 * time.Millisecond}, func(w *world) { w.queue.Run(150 * time.Millisecond) }},
		{"dpsgd/01-rounds", "In each round an exchange with each neighbour while the step is made, and then a commit: this peer is active and proposes to both.", neighbours, "c", nil, run},
		{"dpsgd/02-a-death-in-mid-round", "a dies in the first round with exchanges: the round goes on without it.", neighbours, "c", nil, dies("a", 12*time.Millisecond)},
		{"dpsgd/03-a-straggler", "a takes ten times as long: its neighbours wait for it in each round.", neighbours, "c", map[topology.PeerID]time.Duration{"a": 100 * time.Millisecond}, func(w *world) { w.queue.Run(130 * time.Millisecond) }},
	}
}

// Transcripts are what a person reads to learn the machines, and what shows a change of
// their behaviour.
func TestTranscripts(t *testing.T) {
	for _, s := range scenes(t) {
		t.Run(s.file, func(t *testing.T) {
			path := filepath.Join("../../testdata/transcripts", s.file+".txt")
			got := s.play(t)
			if *rewrite {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
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
				t.Errorf("%s differs; read the difference, then run go test ./averaging/baseline -run Transcripts -rewrite\ngot:\n%s", path, got)
			}
		})
	}
}

// play returns the part of the one that is shown.
func (s scene) play(t failer) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n# Peers a, b and c; this is %s. What is told or offered takes 1 ms to arrive.\n", s.comment, s.who)
	w := newWorld(t, 1, s.machine)
	w.maxDelay = 1 // so that each word takes 1 ms
	all := []topology.PeerID{"a", "b", "c"}
	attempts := map[string]string{}
	w.show = func(n *node, line string) {
		if n.id != s.who {
			return
		}
		line = longNumber.ReplaceAllStringFunc(line, func(number string) string {
			if attempts[number] == "" {
				attempts[number] = fmt.Sprint("#", len(attempts)+1)
			}
			return attempts[number]
		})
		fmt.Fprintln(&out, line)
	}
	w.describe = func(word collective.Message) string {
		return baseline.Describe(word, all, strings.HasPrefix(s.file, "paramserver"))
	}
	for _, id := range all {
		period := 10 * time.Millisecond
		if d := s.slow[id]; d > 0 {
			period = d
		}
		w.join(id, steady(period)).start()
	}
	w.view(0)
	s.act(w)
	return out.String()
}

// longNumber is one that means nothing by itself: that of an attempt.
var longNumber = regexp.MustCompile(`\b[0-9]{9,}\b`)

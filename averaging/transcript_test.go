package averaging_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata from what the machine does")

// Transcripts are what a person reads to learn the machine, and what shows a
// change of its behaviour. A line with # is a comment; "> +10ms step" advances
// the clock and gives an event; the indented lines below are the actions.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("../testdata/transcripts/adpsgd/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s differs; read the difference, then run go test ./averaging -rewrite\ngot:\n%s", file, got)
			}
		})
	}
}

// replay feeds a transcript's events to a machine and returns the transcript with
// the actions that it really takes.
func replay(t *testing.T, transcript string) string {
	t.Helper()
	var out strings.Builder
	var machine *averaging.ADPSGD
	var now time.Duration
	for _, line := range strings.Split(strings.TrimRight(transcript, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "config "):
			machine = configured(t, line)
		case strings.HasPrefix(line, "  "):
			continue // an action of the recording
		case strings.HasPrefix(line, "> "):
			words := strings.Fields(line[2:])
			if step, ok := strings.CutPrefix(words[0], "+"); ok {
				now += duration(t, step)
				words = words[1:]
			}
			fmt.Fprintln(&out, line)
			for _, action := range machine.Handle(now, parseEvent(t, words), nil) {
				fmt.Fprintf(&out, "  %s\n", action)
			}
			continue
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

func configured(t *testing.T, line string) *averaging.ADPSGD {
	t.Helper()
	config := averaging.Config{Rand: rand.New(rand.NewPCG(1, 1)), Deadline: 10 * time.Second}
	for _, word := range strings.Fields(line)[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "self":
			config.Self = topology.PeerID(value)
		case "every":
			config.Pace.Every = atoi(t, value)
		case "inbound":
			config.MaxInbound = atoi(t, value)
		default:
			t.Fatalf("unknown setting %q", word)
		}
	}
	machine, err := averaging.NewADPSGD(config)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func parseEvent(t *testing.T, words []string) averaging.Event {
	t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	event := averaging.Event{Peer: topology.PeerID(arg(1))}
	if n, err := strconv.Atoi(arg(2)); err == nil {
		event.Exchange = averaging.ExchangeID(n)
	}
	switch words[0] {
	case "step":
		return averaging.Event{Kind: averaging.StepDone}
	case "over":
		return averaging.Event{Kind: averaging.RunOver}
	case "view":
		return averaging.Event{Kind: averaging.ViewChanged, Overlay: overlayOf(t, words[1:])}
	case "lost":
		event.Kind = averaging.PeerLost
	case "quarantined":
		event.Kind, event.After = averaging.Quarantined, duration(t, arg(2))
	case "doubt":
		return averaging.Event{Kind: averaging.Doubt, Unresolved: atoi(t, arg(1))}
	case "proposed":
		event.Kind, event.Inbound = averaging.Proposed, true
		if arg(3) == "life" {
			event.Incarnation = uint64(atoi(t, arg(4)))
		}
	case "accepted":
		event.Kind = averaging.Accepted
	case "refused":
		event.Kind = averaging.Refused
		event.Reason = map[string]averaging.Reason{
			"busy": averaging.Busy, "role": averaging.WrongRole, "closing": averaging.Closing, "unfit": averaging.Unfit,
			"quarantine": averaging.Quarantine,
		}[arg(3)]
	case "finished", "failed":
		event.Kind = averaging.Finished
		if words[0] == "failed" {
			event.Kind = averaging.Failed
		}
		if event.Inbound = arg(3) == "inbound"; arg(3) == "silent" {
			event.After = time.Second
		}
		if cost, err := time.ParseDuration(arg(3)); err == nil {
			event.Cost = cost
		}
	case "deadline":
		event.Kind, event.Timer = averaging.TimerFired, averaging.OutboundDeadline
		if arg(3) == "inbound" {
			event.Timer = averaging.InboundDeadline
		}
	default:
		t.Fatalf("unknown event %q", words)
	}
	return event
}

// overlayOf makes the overlay of members given as name=role.
func overlayOf(t testing.TB, words []string) *topology.Overlay {
	t.Helper()
	var members []topology.Member
	for _, word := range words {
		name, role, _ := strings.Cut(word, "=")
		m := topology.Member{ID: topology.PeerID(name)}
		switch role {
		case "active":
			m.Role = topology.Active
		case "passive":
			m.Role = topology.Passive
		}
		members = append(members, m)
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

package session_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata from what conversations say")

// Transcripts are what a person reads to learn the protocol, and what shows a change of
// it. A line with # is a comment; "config …" makes two peers, A and P; "> …" has something
// happen; the indented lines below are what is said, and how it ends.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
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
				t.Errorf("%s differs; read the difference, then run go test ./internal/session -rewrite\ngot:\n%s", file, got)
			}
		})
	}
}

// replay has happen what a transcript says and returns it with what is really said.
func replay(t *testing.T, transcript string) string {
	var out strings.Builder
	var x *pair
	for _, line := range strings.Split(strings.TrimRight(transcript, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "  "):
			continue // of the recording
		case strings.HasPrefix(line, "config"):
			x = configured(t, strings.Fields(line)[1:])
		case strings.HasPrefix(line, "> "):
			x.out.Reset()
			happen(t, x, strings.Fields(line)[1:])
			fmt.Fprintf(&out, "%s\n%s", line, x.out.String())
			continue
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

func configured(t *testing.T, words []string) *pair {
	set := setting{codec: "raw", values: 12, slice: 4, lanes: 1, window: 2}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "codec":
			set.codec = value
		case "values":
			set.values = number(t, value)
		case "slice":
			set.slice = number(t, value)
		case "lanes":
			set.lanes = number(t, value)
		case "window":
			set.window = number(t, value)
		case "another":
			set.another = value
		case "stranger":
			set.stranger = true
		case "copying":
			set.late = true
		case "gradients":
			set.traits = collective.Traits{Gradients: true, Messages: true}
		default:
			t.Fatalf("config has no %s", key)
		}
	}
	return newPair(t, set)
}

// happen has something happen. Words that follow a conversation say how it goes on: "cut=3"
// cuts its streams once three frames have come, "late=3" has its ends wait in vain from then
// on, "within=9" has nine frames' time, "refuse=role" is what P's machine says, "forge=DIFF" spoils frames of a type.
func happen(t *testing.T, x *pair, words []string) {
	frames, end := -1, error(nil)
	x.change, x.within, x.answer = nil, 0, averaging.Action{Kind: averaging.Accept, Overlap: 1}
	id := 1
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "cut":
			frames, end = number(t, value), errCut
		case "late":
			frames, end = number(t, value), errSlow
		case "abort":
			frames, end = number(t, value), session.ErrAborted
		case "id":
			id = number(t, value)
		case "within":
			x.within = time.Duration(number(t, value)) * time.Millisecond
		case "overlap":
			x.answer.Overlap = number(t, value)
		case "refuse":
			x.answer = averaging.Action{Kind: averaging.Refuse, Reason: map[string]averaging.Reason{
				"busy": averaging.Busy, "role": averaging.WrongRole, "closing": averaging.Closing, "round": averaging.Round,
			}[value]}
		case "forge":
			x.change = forged(value)
		default:
			t.Fatalf("nothing is called %s", key)
		}
	}
	switch words[0] {
	case "exchange":
		x.propose(averaging.ExchangeID(id))
	case "transfer":
		x.transfer.Begin(&x.a.local, x.now, "P", replica.TransferTerms{
			Exchange: uint64(id), Transfer: collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1, Round: 3},
		}, x.offer)
		x.begin(x.transfer, x.a, x.p)
	case "inquire":
		x.inquiry = &session.Inquiry{}
		x.inquiry.Begin(&x.p.local, x.now, "A")
		x.begin(x.inquiry, x.p, x.a)
	case "word":
		x.begin(silent{}, x.a, x.p)
		x.ways[0].done[0] = true
		x.say(t, wire.Tell{Kind: 2, Round: 5, Value: 0.5})
	case "noise":
		x.begin(silent{}, x.a, x.p)
		x.ways[0].done[0] = true
		x.say(t, wire.Welcome{})
	case "wait":
		x.now += 40 * time.Second
		x.note("it is %s", x.now)
		return
	default:
		t.Fatalf("nothing is called %s", words[0])
	}
	x.run(frames)
	if end != nil {
		x.cut(end)
		x.run(-1)
	}
	apart, sum := 0.0, 0.0
	for _, v := range x.sum() {
		sum += v
	}
	for i := range x.a.params {
		apart = max(apart, max(float64(x.a.params[i]-x.p.params[i]), float64(x.p.params[i]-x.a.params[i])))
	}
	x.note("the sum of both models is %.5f, they are %.5f apart", sum, apart)
}

// say has A say a message.
func (x *pair) say(t *testing.T, m wire.Message) {
	frame, err := wire.Pack(nil, 0, m)
	if err != nil {
		t.Fatal(err)
	}
	x.send(x.ways[0], 0, frame)
}

// silent is one who does not listen.
type silent struct{ session.Conversation }

// forged spoils frames of a type, as one would who can seal them.
func forged(typ string) func(string, []byte) []byte {
	return func(_ string, frame []byte) []byte {
		h, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
		if err != nil || h.Type.String() != typ {
			return frame
		}
		if len(payload) > 0 {
			payload = payload[:len(payload)-1]
		}
		lie := append(wire.Reserve(nil), payload...)
		if err := wire.Seal(lie, h); err != nil {
			panic(err)
		}
		return lie
	}
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(errors.Join(errors.New("a number is wanted"), err))
	}
	return n
}

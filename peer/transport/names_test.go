package transport_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// FuzzTexts: what passes for an id or an address is one word of a line, whatever it is read from: it goes into files and
// logs, where a space or the end of a line would begin something else.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"", "12D3KooWabc", "mem:host", "mem:host\nvictim mem:trap", "a b", "/ip4/192.0.2.1/tcp/4001", "ü:1", "\xff", "a\u2028b", "a\u00a0b", "a\x7f", strings.Repeat("x", 200)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, address := transport.CheckID(transport.PeerID(text)), transport.CheckAddress(text)
		if words := strings.Fields(text); id == nil && (len(words) != 1 || words[0] != text) || address == nil && text != "" && (len(words) != 1 || words[0] != text) {
			t.Errorf("%q passes for an id (%v) or an address (%v)", text, id, address)
		}
		if address == nil && (len(text) > transport.MaxAddressSize || strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsControl(r) || r == unicode.ReplacementChar && !strings.Contains(text, "\ufffd")
		})) {
			t.Errorf("%q passes for an address", text)
		}
		if id == nil && address != nil && len(text) <= transport.MaxAddressSize {
			t.Errorf("%q is an id, which is no address: %v", text, address)
		}
		for _, err := range []error{id, address} {
			if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("what is wrong with %q takes more than a line: %v", text, err)
			}
		}
	})
}

// TestBoundsOfTexts: up to the bound, and no byte beyond.
func TestBoundsOfTexts(t *testing.T) {
	for n, fits := range map[int]bool{1: true, 128: true, 129: false, 0: false} {
		if err := transport.CheckID(transport.PeerID(strings.Repeat("x", n))); (err == nil) != fits {
			t.Errorf("an id of %d bytes: %v", n, err)
		}
	}
	for n, fits := range map[int]bool{1: true, transport.MaxAddressSize: true, transport.MaxAddressSize + 1: false} {
		if err := transport.CheckAddress(strings.Repeat("x", n)); (err == nil) != fits {
			t.Errorf("an address of %d bytes: %v", n, err)
		}
	}
}

// record draws one of few lives, so that equal ones are met.
func record(t *rapid.T, name string) transport.Record {
	return transport.Record{
		Incarnation: rapid.Uint64Range(0, 2).Draw(t, name+" life"), Sequence: rapid.Uint64Range(0, 2).Draw(t, name+" sequence"),
		Steps: rapid.Uint64().Draw(t, name+" steps"), Head: rapid.Uint64().Draw(t, name+" head"),
	}
}

// TestNewerIsAnOrder: of two records of a member that are not of the same life and number one is newer, whoever compares
// them, and in whatever order they come the same is kept.
func TestNewerIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := record(t, "a"), record(t, "b"), record(t, "c")
		same := a.Incarnation == b.Incarnation && a.Sequence == b.Sequence
		if one, other := a.Newer(b), b.Newer(a); one && other || (one || other) == same {
			t.Fatalf("%+v newer than %+v: %t; the other way: %t", a, b, one, other)
		}
		if a.Newer(b) && b.Newer(c) && !a.Newer(c) {
			t.Fatalf("%+v, %+v, %+v", a, b, c)
		}
		if a.Incarnation > b.Incarnation && !a.Newer(b) {
			t.Fatalf("an earlier life %+v outlives %+v", b, a)
		}
	})
}

// TestAnAgeNeverWraps: a member that claims more steps than there are numbers must not pass for a young one.
func TestAnAgeNeverWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record(t, "r")
		if age := r.Age(); age < r.Steps || age < r.Head || r.Steps < 1<<62 && r.Head < 1<<62 && age != r.Steps+r.Head {
			t.Fatalf("%d and %d steps make %d", r.Head, r.Steps, age)
		}
	})
	if age := (transport.Record{Steps: math.MaxUint64, Head: 1}).Age(); age != math.MaxUint64 {
		t.Errorf("the age %d", age)
	}
}

// TestWhatErrorsSay: a refusal names who refuses, why, what else it said and what to do, and is found by its reason; an
// incarnation that was used names both.
func TestWhatErrorsSay(t *testing.T) {
	refused := &transport.RefusedError{Peer: "b", Why: transport.ErrLayout, Remedy: "Start both with one model."}
	const short, long = "peer b refuses: another layout of parameters. Start both with one model.", "peer b refuses: another layout of parameters (3 values here). Start both with one model."
	if refused.Error() != short {
		t.Errorf("%q, want %q", refused, short)
	}
	if refused.Detail = "3 values here"; refused.Error() != long {
		t.Errorf("%q, want %q", refused, long)
	}
	if !errors.Is(refused, transport.ErrLayout) || errors.Is(refused, transport.ErrUnknownRun) {
		t.Error("it is not found by its reason, or by another")
	}
	const used = "incarnation 3 was used by an earlier life of this peer, which reached 7"
	if err := (&transport.OldIncarnationError{Announced: 3, Highest: 7}); err.Error() != used {
		t.Errorf("%q, want %q", err, used)
	}
}

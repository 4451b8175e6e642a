package wire

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func controlSample() Control {
	m := Control{
		Kind: ControlHold, Sequence: 3, Run: "digits", Author: "operator",
		Body: []byte("\x01\x05lunch"),
	}
	for i := range m.Signature {
		m.Signature[i] = 0x80 + byte(i)
	}
	return m
}

func drawControl(t *rapid.T) Control {
	m := Control{
		Kind: ControlKind(rapid.Uint8Range(1, 255).Draw(t, "kind")), Sequence: rapid.Uint64().Draw(t, "sequence"),
		Run: drawText(t, 1, MaxRunName), Author: drawText(t, 1, MaxAuthor),
		Body: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "body"),
	}
	if m.Kind.Planned() {
		m.At = rapid.Uint64().Draw(t, "at")
	}
	copy(m.Signature[:], rapid.SliceOfN(rapid.Byte(), ControlSignature, ControlSignature).Draw(t, "signature"))
	return m
}

// What is signed is all of a message but the signature, behind a label of its own.
func TestControlSignsEverything(t *testing.T) {
	m := controlSample()
	whole := m.Append(nil)
	if want := controlLabel + string(whole[:len(whole)-ControlSignature]); string(m.Signed()) != want {
		t.Errorf("signed is %q, want %q", m.Signed(), want)
	}
}

func TestControlFieldsOutOfBounds(t *testing.T) {
	edited := func(edit func(*Control)) Control {
		m := controlSample()
		edit(&m)
		return m
	}
	for name, m := range map[string]Control{
		"no kind":            edited(func(m *Control) { m.Kind = 0 }),
		"hold at a step":     edited(func(m *Control) { m.At = 1 }),
		"no run":             edited(func(m *Control) { m.Run = "" }),
		"no author":          edited(func(m *Control) { m.Author = "" }),
		"long author":        edited(func(m *Control) { m.Author = strings.Repeat("a", MaxAuthor+1) }),
		"author on two rows": edited(func(m *Control) { m.Author = "a\nb" }),
		"large body":         edited(func(m *Control) { m.Body = make([]byte, MaxControlBody+1) }),
		"endless body":       edited(func(m *Control) { m.Body = make([]byte, 1<<16+1) }),
	} {
		if got, err := decodeAs[Control](m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decoded %+v, %v", name, got, err)
		}
	}
}

func digestSample() Digest {
	return Digest{
		Incarnation: 1, Steps: 2, FlockSteps: 3, Exchanges: 4, Failed: 5, State: 2, HasLoss: true, Loss: 0.5, Samples: 100, Distance: 0.25,
		Met: 2, Partners: [MaxDigestPartners]DigestPartner{{7, 8}, {9, 10}},
	}
}

// A digest survives its encoding; cut anywhere, or with a byte too many, it is refused.
func TestDigests(t *testing.T) {
	want := digestSample()
	text := want.Append(nil)
	var got Digest
	if err := got.Decode(text); err != nil || got != want {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
	for cut := range len(text) {
		if err := got.Decode(text[:cut]); !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d of %d bytes: %+v, %v", cut, len(text), got, err)
		}
	}
	if err := got.Decode(append(text, 0)); !errors.Is(err, ErrMessage) {
		t.Errorf("with a byte too many: %+v, %v", got, err)
	}
	for name, d := range map[string]Digest{"unknown loss": {Loss: 1}, "NaN distance": {Distance: math.NaN()}} {
		if err := got.Decode(d.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decoded %+v, %v", name, got, err)
		}
	}
}

// FuzzDigests decodes any bytes as a digest. What is accepted is the one encoding of what
// it means.
func FuzzDigests(f *testing.F) {
	f.Add(digestSample().Append(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got Digest
		if err := got.Decode(text); err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		if again := got.Append(nil); !bytes.Equal(again, text) {
			t.Fatalf("% x is accepted as %+v, which is % x", text, got, again)
		}
	})
}

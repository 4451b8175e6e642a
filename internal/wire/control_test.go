package wire

import (
	"errors"
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

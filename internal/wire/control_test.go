package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func controlSample() Control {
	m := Control{
		Kind: ControlHold, Sequence: 3, Run: "digits", Author: "operator",
		Body: Hold{Paused: true, Why: "lunch"}.Append(nil),
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
	if other := m; !m.Same(other) {
		t.Error("a message is not the same as itself")
	} else if other.Sequence++; m.Same(other) {
		t.Error("two messages are the same")
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

// body is what a control message says.
type body interface{ Append([]byte) []byte }

func decodeBody[B body, P interface {
	*B
	Decode([]byte) error
}](text []byte) (body, error) {
	var b B
	err := P(&b).Decode(text)
	return b, err
}

func bodyDecoders() []func([]byte) (body, error) {
	return []func([]byte) (body, error){
		decodeBody[Announce], decodeBody[Hold], decodeBody[Stop], decodeBody[Rate], decodeBody[Pace], decodeBody[Work], decodeBody[Digest],
	}
}

func bodySamples() []body {
	return []body{
		Announce{Layout: layoutHash(), Settings: []Setting{{"dataset", "glyphs"}, {"model", ""}}},
		Hold{Why: "naïve"}, Stop{Why: "enough"},
		Rate{Full: 0.1, Warmup: 0.05, Factor: 0.5, Shape: 2, Milestones: []float64{0.5, 0.75}},
		Pace{Every: 7}, Work{Steps: 1, StepsPerPeer: 2},
		Digest{Incarnation: 1, Steps: 2, FlockSteps: 3, Exchanges: 4, Failed: 5, State: 2, HasLoss: true, Loss: 0.5, Samples: 100, Distance: 0.25, Met: 2, Partners: [MaxDigestPartners]DigestPartner{{7, 8}, {9, 10}}},
	}
}

// A body survives its encoding; cut anywhere, or with a byte too many, it is refused.
func TestControlBodies(t *testing.T) {
	for i, want := range bodySamples() {
		text, decode := want.Append(nil), bodyDecoders()[i]
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decoded %+v, %v, want %+v", got, err, want)
		}
		for cut := range len(text) {
			if got, err := decode(text[:cut]); !errors.Is(err, ErrMessage) {
				t.Errorf("%T cut to %d of %d bytes: %+v, %v", want, cut, len(text), got, err)
			}
		}
		if got, err := decode(append(text, 0)); !errors.Is(err, ErrMessage) {
			t.Errorf("%T with a byte too many: %+v, %v", want, got, err)
		}
	}
}

func TestControlBodiesOutOfBounds(t *testing.T) {
	many := make([]Setting, MaxSettings+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("%02d", i)
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		kind int
		body body
	}{
		"setting without a name": {0, Announce{Settings: []Setting{{"", "v"}}}},
		"setting twice":          {0, Announce{Settings: []Setting{{"a", "1"}, {"a", "2"}}}},
		"settings out of order":  {0, Announce{Settings: []Setting{{"b", ""}, {"a", ""}}}},
		"many settings":          {0, Announce{Settings: many}},
		"long value":             {0, Announce{Settings: []Setting{{"a", strings.Repeat("v", MaxSettingValue+1)}}}},
		"long reason":            {1, Hold{Why: strings.Repeat("w", MaxWhy+1)}},
		"reason with an escape":  {2, Stop{Why: "a\x1b[2J"}},
		"rate NaN":               {3, Rate{Full: nan}},
		"infinite milestone":     {3, Rate{Milestones: []float64{math.Inf(1)}}},
		"many milestones":        {3, Rate{Milestones: make([]float64, MaxMilestones+1)}},
		"pace beyond 31 bits":    {4, Pace{Every: 1 << 31}},
		"unknown loss":           {6, Digest{Loss: 1}},
		"NaN distance":           {6, Digest{Distance: nan}},
	} {
		if got, err := bodyDecoders()[c.kind](c.body.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decoded %+v, %v", name, got, err)
		}
	}
	largest := Announce{Settings: make([]Setting, MaxSettings)}
	for i := range largest.Settings {
		largest.Settings[i] = Setting{fmt.Sprintf("%032d", i), strings.Repeat("v", MaxSettingValue)}
	}
	text := largest.Append(nil)
	if _, err := decodeBody[Announce](text); err != nil || len(text) > MaxControlBody {
		t.Errorf("the largest announcement has %d bytes, at most %d fit: %v", len(text), MaxControlBody, err)
	}
}

// FuzzControlBodies decodes any bytes as any body. What is accepted is the one
// encoding of what it means.
func FuzzControlBodies(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		decoders := bodyDecoders()
		got, err := decoders[int(kind)%len(decoders)](text)
		if err != nil {
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

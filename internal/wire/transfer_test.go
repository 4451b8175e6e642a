package wire

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// transferVectors are one frame of each type that a transfer has, and a word.
func transferVectors() []vector {
	run := []part{{1, "length of the run's name"}, {6, "run: \"digits\""}}
	values := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f}
	return []vector{
		{
			name: "tell", about: "a machine tells another something about round 12",
			message: Tell{Kind: 3, Round: 12, View: 0x1122334455667788, Value: 0.5},
			parts:   []part{{1, "kind: 3"}, {8, "round: 12"}, {8, "view digest: 0x1122334455667788"}, {8, "value: 0.5"}},
		},
		{
			name: "offer", about: "a peer offers, as number 8, the second quarter of its sum, to be added to the other's",
			header: Header{Exchange: 8},
			message: Offer{
				Opening: Opening{
					Run: "digits", Layout: layoutHash(), View: 0x1122334455667788, Incarnation: 2, Steps: 1024,
					SliceLen: 16384, Cut: 0x99aabbccddeeff00, Codecs: []uint8{1},
				},
				From: BufferSum, Into: BufferSum, Add: true, Part: 1, Parts: 4, Round: 12,
			},
			parts: append(append([]part{
				{32, "layout hash"}, {8, "view digest: 0x1122334455667788"}, {8, "incarnation: 2"}, {8, "steps: 1024"},
				{4, "values per slice: 16384"}, {8, "digest of the cut: 0x99aabbccddeeff00"},
				{1, "from: 2, sum"}, {1, "into: 2, sum"}, {1, "added: 1, yes"}, {4, "part: 1"}, {4, "of so many: 4"}, {8, "round: 12"},
			}, run...), part{1, "number of codecs"}, part{1, "codec: 1"}),
		},
		{
			name: "part", about: "three pieces of transfer 8, from piece 5 on, in which there are 48 samples",
			header:  Header{Type: TypePart, Exchange: 8, Slice: 5},
			payload: append(AppendPartInfo(nil, PartInfo{Weight: 48, Codec: 1, Pieces: 3}), values...),
			parts: []part{
				{8, "weight: 48"}, {4, "pieces: 3"}, {1, "codec: 1"}, {1, "form: 0, values"}, {2, "rank: 0"},
				{12, "the codec's bytes (here float32: 1, -2, 0.5)"},
			},
		},
		{
			name: "part-empty", about: "three pieces of transfer 8 in which there is nothing",
			header:  Header{Type: TypePart, Exchange: 8, Slice: 5},
			payload: AppendPartInfo(nil, PartInfo{Codec: 1, Pieces: 3}),
			parts:   []part{{8, "weight: 0"}, {4, "pieces: 3"}, {1, "codec: 1"}, {1, "form: 0, values"}, {2, "rank: 0"}},
		},
		{
			name: "part-inputs", about: "of a matrix with three columns, a row of the inputs of transfer 8, of two: its product is for piece 5 and those after it",
			header:  Header{Type: TypePart, Exchange: 8, Slice: 5},
			payload: append(AppendPartInfo(nil, PartInfo{Weight: 48, Codec: 1, Pieces: 1, Form: FormInputs, Rank: 2}), values...),
			parts: []part{
				{8, "weight: 48"}, {4, "rows that follow: 1"}, {1, "codec: 1"}, {1, "form: 1, inputs"}, {2, "rank: 2"},
				{12, "the row (float32: 1, -2, 0.5)"},
			},
		},
		{
			name: "part-errors", about: "after both rows of inputs, three pieces of transfer 8, from piece 5 on, in two rows of the matrix",
			header:  Header{Type: TypePart, Exchange: 8, Slice: 5},
			payload: append(AppendPartInfo(nil, PartInfo{Weight: 48, Codec: 1, Pieces: 3, Form: FormErrors, Rank: 2}), append(values, 0, 0, 0, 0)...),
			parts: []part{
				{8, "weight: 48"}, {4, "pieces: 3"}, {1, "codec: 1"}, {1, "form: 2, errors"}, {2, "rank: 2"},
				{8, "errors of the first row of the batch at two outputs (float32: 1, -2)"}, {8, "and of the second (0.5, 0)"},
			},
		},
		{
			name: "taken", about: "all of transfer 8 has been taken in",
			header: Header{Type: TypeTaken, Exchange: 8}, payload: []byte{},
		},
	}
}

// The largest message of each type is exactly as large as its type allows.
func TestLargestTransferMessages(t *testing.T) {
	for _, m := range []Message{
		Tell{Value: math.MaxFloat64},
		Offer{Opening: Opening{Run: strings.Repeat("r", MaxRunName), SliceLen: 1, Codecs: make([]uint8, MaxCodecs)}, Parts: MaxParts},
	} {
		payload := m.Append(nil)
		if most, _ := m.Type().limit(); len(payload) != most {
			t.Errorf("%v: the largest has %d bytes, the limit is %d", m.Type(), len(payload), most)
		}
		if _, err := messageDecoders()[m.Type()](payload); err != nil {
			t.Error(err)
		}
	}
}

func TestTransferFieldsOutOfBounds(t *testing.T) {
	offer := func(edit func(*Offer)) Offer {
		m := Offer{Opening: Opening{Run: "digits", SliceLen: 1, Codecs: []uint8{1}}, Parts: 1}
		edit(&m)
		return m
	}
	for name, m := range map[string]Message{
		"tell, no number":      Tell{Value: math.NaN()},
		"tell, infinite":       Tell{Value: math.Inf(-1)},
		"offer, other buffer":  offer(func(m *Offer) { m.From = BufferSum + 1 }),
		"offer, into another":  offer(func(m *Offer) { m.Into = 255 }),
		"offer, no parts":      offer(func(m *Offer) { m.Parts = 0 }),
		"offer, many parts":    offer(func(m *Offer) { m.Parts = MaxParts + 1 }),
		"offer, part beyond":   offer(func(m *Offer) { m.Part = 1 }),
		"offer, empty slices":  offer(func(m *Offer) { m.SliceLen = 0 }),
		"offer, no codec":      offer(func(m *Offer) { m.Codecs = nil }),
		"offer, no run":        offer(func(m *Offer) { m.Run = "" }),
		"offer, endless codec": offer(func(m *Offer) { m.Codecs = make([]uint8, 257) }),
	} {
		if got, err := messageDecoders()[m.Type()](m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decoded %+v, %v", name, got, err)
		}
	}
	payload := offer(func(*Offer) {}).Append(nil)
	payload[32+8+8+8+4+8+2] = 2
	if got, err := decodeAs[Offer](payload); !errors.Is(err, ErrMessage) {
		t.Errorf("neither added nor replaced: decoded %+v, %v", got, err)
	}
}

func TestPartInfo(t *testing.T) {
	for _, weight := range []float64{1, 1.5, MaxWeight} {
		want := PartInfo{Weight: weight, Codec: 3, Pieces: math.MaxUint32}
		if info, code, err := SplitPart(append(AppendPartInfo(nil, want), "code"...)); err != nil || info != want || string(code) != "code" {
			t.Errorf("weight %g: %+v, %q, %v", weight, info, code, err)
		}
	}
	for _, weight := range []float64{-1, 0.5, math.SmallestNonzeroFloat64, math.Copysign(0, -1), 2 * MaxWeight, math.Inf(1), math.NaN()} {
		if info, _, err := SplitPart(AppendPartInfo(nil, PartInfo{Weight: weight, Pieces: 1})); !errors.Is(err, ErrMessage) {
			t.Errorf("weight %g: %+v, %v", weight, info, err)
		}
	}
	good := AppendPartInfo(nil, PartInfo{Pieces: 1})
	for cut := range len(good) {
		if _, _, err := SplitPart(good[:cut]); !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d bytes: %v", cut, err)
		}
	}
	if _, _, err := SplitPart(append(good, 0)); !errors.Is(err, ErrMessage) {
		t.Errorf("code of values that weigh nothing: %v", err)
	}
	if _, _, err := SplitPart(AppendPartInfo(nil, PartInfo{Weight: 1})); !errors.Is(err, ErrMessage) {
		t.Errorf("no pieces: %v", err)
	}
	product := PartInfo{Weight: 1, Codec: 1, Pieces: 1, Form: FormErrors, Rank: math.MaxUint16}
	if info, _, err := SplitPart(AppendPartInfo(nil, product)); err != nil || info != product {
		t.Errorf("%+v, %v", info, err)
	}
	for _, info := range []PartInfo{
		{Weight: 1, Pieces: 1, Form: FormErrors + 1, Rank: 1}, {Weight: 1, Pieces: 1, Form: FormInputs}, {Weight: 1, Pieces: 1, Rank: 1}, {Pieces: 1, Form: FormInputs, Rank: 1},
	} {
		if _, _, err := SplitPart(AppendPartInfo(nil, info)); !errors.Is(err, ErrMessage) {
			t.Errorf("%+v: %v", info, err)
		}
	}
}

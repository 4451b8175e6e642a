package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func drawHash(t *rapid.T) [32]byte {
	return [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
}

// drawText draws text that may be shown, of at most so many bytes.
func drawText(t *rapid.T, least, most int) string {
	runes := rapid.RuneFrom([]rune("azAZ09-_. ~é世🙂"))
	return rapid.StringOfN(runes, least, most, most).Draw(t, "text")
}

// drawMessage draws a message of any type, with every field anywhere in its range.
func drawMessage(t *rapid.T) Message {
	number := func(label string) uint64 { return rapid.Uint64().Draw(t, label) }
	sliceLen := rapid.Uint32Range(1, MaxSliceLen)
	overlap, lanes := rapid.Uint8Range(1, math.MaxUint8), rapid.Uint8Range(1, MaxLanes)
	return rapid.SampledFrom(append(append(append(rowsMessages(t), valuesMessages(t)...), stagesMessages(t)...), []func() Message{
		func() Message {
			return Hello{Run: drawText(t, 1, MaxRunName), Layout: drawHash(t), Incarnation: number("incarnation"), Steps: number("steps")}
		},
		func() Message {
			return Welcome{Incarnation: number("incarnation"), Steps: number("steps"), FlockSteps: number("flock"), KnownIncarnation: number("known")}
		},
		func() Message {
			return Refuse{Reason: Reason(rapid.Uint8Range(1, 255).Draw(t, "reason")), Detail: drawText(t, 0, MaxDetail)}
		},
		func() Message {
			return Propose{
				Opening: Opening{
					Run: drawText(t, 1, MaxRunName), Layout: drawHash(t), View: number("view"), Incarnation: number("incarnation"), Steps: number("steps"),
					SliceLen: sliceLen.Draw(t, "slice length"), Cut: number("cut"), Codecs: rapid.SliceOfN(rapid.Uint8(), 1, MaxCodecs).Draw(t, "codecs"),
				},
				Overlap: overlap.Draw(t, "overlap"), Lanes: lanes.Draw(t, "lanes"),
			}
		},
		func() Message {
			n := lanes.Draw(t, "lanes")
			return Accept{
				Codecs: rapid.SliceOfN(rapid.Uint8(), 1, MaxCodecs).Draw(t, "codecs"), Window: rapid.Uint16Range(1, MaxInDoubt/uint16(n)).Draw(t, "window"),
				Overlap: overlap.Draw(t, "overlap"), Lanes: n,
				Steps: number("steps"), Incarnation: number("incarnation"),
			}
		},
		func() Message {
			return Record{View: number("view"), Signed: rapid.SliceOfN(rapid.Byte(), 1, MaxSigned).Draw(t, "signed")}
		},
		func() Message {
			return Description{
				Text: rapid.SliceOfN(rapid.Byte(), 1, MaxDescription).Draw(t, "text"), Signer: drawText(t, 1, MaxPeerName),
				Signature: rapid.SliceOfN(rapid.Byte(), 1, MaxSignature).Draw(t, "signature"),
			}
		},
		func() Message { return Lane{Lane: rapid.Uint8Range(1, MaxLanes-1).Draw(t, "lane")} },
		func() Message {
			return Status{Incarnation: number("incarnation"), Slices: rapid.SliceOfN(rapid.Uint32(), 1, MaxInDoubt).Draw(t, "slices")}
		},
		func() Message {
			if !rapid.Bool().Draw(t, "known") {
				return Settled{}
			}
			return Settled{Known: true, Applied: number("applied")}
		},
		func() Message {
			return StateRequest{Run: drawText(t, 1, MaxRunName), Layout: drawHash(t), Steps: number("steps")}
		},
		func() Message {
			length := sliceLen.Draw(t, "slice length")
			return Manifest{
				Run: drawText(t, 1, MaxRunName), Layout: drawHash(t), Server: drawText(t, 1, MaxPeerName), Incarnation: number("incarnation"),
				Steps: number("steps"), FlockSteps: number("flock"), SliceLen: length,
				Values:    rapid.Uint64Range(1, uint64(length)*math.MaxUint32).Draw(t, "values"),
				Signature: rapid.SliceOfN(rapid.Byte(), 1, MaxSignature).Draw(t, "signature"),
			}
		},
		func() Message {
			return StateHashes{
				Signature: rapid.SliceOfN(rapid.Byte(), 1, MaxSignature).Draw(t, "signature"),
				Hashes:    slices.Repeat([]byte{7}, HashSize*rapid.IntRange(1, MaxWanted).Draw(t, "hashes")),
			}
		},
		func() Message {
			return StateWant{First: rapid.Uint32Range(0, math.MaxUint32-MaxWanted).Draw(t, "first"), Count: rapid.Uint32Range(1, MaxWanted).Draw(t, "count")}
		},
		func() Message { return drawControl(t) },
		func() Message {
			return Tell{
				Kind: rapid.Uint8().Draw(t, "kind of word"), Round: number("round"), View: number("view"),
				Value: rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "value"),
			}
		},
		func() Message {
			parts := rapid.Uint32Range(1, MaxParts).Draw(t, "parts")
			buffer := rapid.Uint8Range(BufferParameters, BufferSum)
			return Offer{
				Opening: Opening{
					Run: drawText(t, 1, MaxRunName), Layout: drawHash(t), View: number("view"), Incarnation: number("incarnation"), Steps: number("steps"),
					SliceLen: sliceLen.Draw(t, "slice length"), Cut: number("cut"), Codecs: rapid.SliceOfN(rapid.Uint8(), 1, MaxCodecs).Draw(t, "codecs"),
				},
				From: buffer.Draw(t, "from"), Into: buffer.Draw(t, "into"), Add: rapid.Bool().Draw(t, "add"), Part: rapid.Uint32Range(0, parts-1).Draw(t, "part"), Parts: parts, Round: number("round"),
			}
		},
		func() Message {
			size := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "size")
			var partners []string
			for range rapid.IntRange(0, MaxSumPartners).Draw(t, "partners") {
				partners = append(partners, drawText(t, 1, maxID))
			}
			m := Sum{
				Kind: SumKind(rapid.Uint8Range(1, uint8(lastSumKind)).Draw(t, "sum's kind")), Op: rapid.Uint8Range(0, SumMasked+1).Draw(t, "op"),
				Stage: rapid.Uint8().Draw(t, "stage"), Name: drawText(t, 1, MaxSumName), Attempt: number("attempt"), Length: number("length"),
				Least: rapid.Uint32().Draw(t, "least"), Timeout: rapid.Uint32().Draw(t, "patience"), Term: rapid.Uint32().Draw(t, "term"),
				Question: rapid.Uint32().Draw(t, "question"), Rank: rapid.Uint32Range(0, size-1).Draw(t, "rank"), Size: size,
				Next: drawText(t, 0, maxID), Detail: drawText(t, 0, maxWhy), Partners: partners,
			}
			m.Masks = drawMasks(t, m)
			return m
		},
	}...)).Draw(t, "kind")()
}

// A message survives its encoding, behind whatever stood in the buffer before, and
// fits a frame; cut anywhere, or with a byte too many, it is refused.
func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		decode := messageDecoders()[m.Type()]
		before := []byte("before")
		payload, found := bytes.CutPrefix(m.Append(before), before)
		if !found {
			t.Fatal("Append has changed what it appended to")
		}
		if got, err := decode(payload); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("decoded %+v (%v), want %+v", got, err, m)
		}
		if frame, err := Pack(nil, 0, m); err != nil || len(frame) != HeaderSize+len(payload) {
			t.Fatalf("a frame of %d bytes for a payload of %d, %v", len(frame), len(payload), err)
		}
		for cut := range len(payload) {
			if got, err := decode(payload[:cut]); !errors.Is(err, ErrMessage) {
				t.Fatalf("cut to %d of %d bytes: %+v, %v", cut, len(payload), got, err)
			}
		}
		if got, err := decode(append(payload, 0)); !errors.Is(err, ErrMessage) {
			t.Fatalf("with a byte too many: %+v, %v", got, err)
		}
	})
}

// The largest message of each type is exactly as large as its type allows.
func TestLargestMessages(t *testing.T) {
	run := strings.Repeat("r", MaxRunName)
	for _, m := range []Message{
		Hello{Run: run},
		Welcome{},
		Refuse{Reason: 1, Detail: strings.Repeat("d", MaxDetail)},
		Propose{Opening: Opening{Run: run, SliceLen: MaxSliceLen, Codecs: make([]uint8, MaxCodecs)}, Overlap: 1, Lanes: MaxLanes},
		Accept{Window: MaxInDoubt / MaxLanes, Overlap: 1, Lanes: MaxLanes, Codecs: make([]uint8, MaxCodecs)},
		Status{Slices: make([]uint32, MaxInDoubt)},
		Settled{Known: true, Applied: math.MaxUint64},
		Lane{Lane: MaxLanes - 1},
		Record{Signed: make([]byte, MaxSigned)},
		StateRequest{Run: run},
		Manifest{
			Run: run, Server: strings.Repeat("p", MaxPeerName), Signature: make([]byte, MaxSignature),
			Values: MaxSliceLen * math.MaxUint32, SliceLen: MaxSliceLen,
		},
		StateWant{First: math.MaxUint32 - MaxWanted, Count: MaxWanted},
		StateHashes{Signature: make([]byte, MaxSignature), Hashes: make([]byte, MaxWanted*HashSize)},
		Control{Kind: ControlWork, Run: run, Author: strings.Repeat("a", MaxAuthor), Body: make([]byte, MaxControlBody)},
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

// What a field may not hold is refused when decoded; nothing out of bounds turns
// into another message on its way.
func TestFieldsOutOfBounds(t *testing.T) {
	long := strings.Repeat("r", MaxRunName+1)
	endless := strings.Repeat("r", 300)
	propose := func(edit func(*Propose)) Propose {
		m := Propose{Opening: Opening{Run: "digits", SliceLen: 1, Codecs: []uint8{0}}, Overlap: 1, Lanes: 1}
		edit(&m)
		return m
	}
	manifest := func(edit func(*Manifest)) Manifest {
		m := Manifest{Run: "digits", Server: "donor", Signature: []byte{1}, Values: 1, SliceLen: 1}
		edit(&m)
		return m
	}
	for name, m := range map[string]Message{
		"hello, no run":              Hello{},
		"hello, long run":            Hello{Run: long},
		"hello, endless run":         Hello{Run: endless},
		"hello, run with a newline":  Hello{Run: "a\nb"},
		"hello, run with an escape":  Hello{Run: "a\x1b[2Jb"},
		"hello, run with a C1":       Hello{Run: "a\u009bb"},
		"hello, run not UTF-8":       Hello{Run: "a\xff"},
		"state request, no run":      StateRequest{},
		"refuse, no reason":          Refuse{},
		"propose, long run":          propose(func(m *Propose) { m.Run = long }),
		"propose, empty slices":      propose(func(m *Propose) { m.SliceLen = 0 }),
		"propose, large slices":      propose(func(m *Propose) { m.SliceLen = MaxSliceLen + 1 }),
		"propose, no codec":          propose(func(m *Propose) { m.Codecs = nil }),
		"propose, many codecs":       propose(func(m *Propose) { m.Codecs = make([]uint8, MaxCodecs+1) }),
		"propose, endless codecs":    propose(func(m *Propose) { m.Codecs = make([]uint8, 256+1) }),
		"propose, not even itself":   propose(func(m *Propose) { m.Overlap = 0 }),
		"accept, no codec":           Accept{Window: 1, Overlap: 1, Lanes: 1},
		"propose, no lane":           propose(func(m *Propose) { m.Lanes = 0 }),
		"propose, many lanes":        propose(func(m *Propose) { m.Lanes = MaxLanes + 1 }),
		"accept, no window":          Accept{Overlap: 1, Lanes: 1, Codecs: []uint8{1}},
		"accept, large window":       Accept{Window: MaxInDoubt + 1, Overlap: 1, Lanes: 1, Codecs: []uint8{1}},
		"accept, larger in all":      Accept{Window: MaxInDoubt/2 + 1, Overlap: 1, Lanes: 2, Codecs: []uint8{1}},
		"accept, overflowing window": Accept{Window: (1<<16)/3 + 1, Overlap: 1, Lanes: 3, Codecs: []uint8{1}},
		"accept, not even itself":    Accept{Window: 1, Lanes: 1, Codecs: []uint8{1}},
		"accept, no lane":            Accept{Window: 1, Overlap: 1, Codecs: []uint8{1}},
		"accept, many lanes":         Accept{Window: 1, Overlap: 1, Lanes: MaxLanes + 1, Codecs: []uint8{1}},
		"record, none":               Record{View: 1},
		"record, too long":           Record{Signed: make([]byte, MaxSigned+1)},
		"record, endless":            Record{Signed: make([]byte, 1<<16+1)},
		"lane, the first":            Lane{},
		"lane, beyond the last":      Lane{Lane: MaxLanes},
		"status, no slice":           Status{Incarnation: 1},
		"status, many slices":        Status{Slices: make([]uint32, MaxInDoubt+1)},
		"status, endless slices":     Status{Slices: make([]uint32, 256+1)},
		"settled, unknown applied":   Settled{Applied: 1},
		"manifest, no values":        manifest(func(m *Manifest) { m.Values = 0 }),
		"manifest, empty slices":     manifest(func(m *Manifest) { m.SliceLen = 0 }),
		"manifest, large slices":     manifest(func(m *Manifest) { m.SliceLen = MaxSliceLen + 1 }),
		"manifest, too many slices":  manifest(func(m *Manifest) { m.Values = 1 << 32 }),
		"manifest, numbers overflow": manifest(func(m *Manifest) { m.Values, m.SliceLen = math.MaxUint64, MaxSliceLen }),
		"manifest, no donor":         manifest(func(m *Manifest) { m.Server = "" }),
		"manifest, long donor":       manifest(func(m *Manifest) { m.Server = strings.Repeat("p", MaxPeerName+1) }),
		"manifest, donor with a tab": manifest(func(m *Manifest) { m.Server = "a\tb" }),
		"manifest, no run":           manifest(func(m *Manifest) { m.Run = "" }),
		"manifest, no signature":     manifest(func(m *Manifest) { m.Signature = nil }),
		"manifest, long signature":   manifest(func(m *Manifest) { m.Signature = make([]byte, MaxSignature+1) }),
		"manifest, endless one":      manifest(func(m *Manifest) { m.Signature = make([]byte, 256+1) }),
		"hashes, no signature":       StateHashes{Hashes: make([]byte, HashSize)},
		"hashes, none":               StateHashes{Signature: []byte{1}},
		"hashes, a part of one":      StateHashes{Signature: []byte{1}, Hashes: make([]byte, HashSize+1)},
		"hashes, many":               StateHashes{Signature: []byte{1}, Hashes: make([]byte, (MaxWanted+1)*HashSize)},
		"want, nothing":              StateWant{First: 1},
		"want, much":                 StateWant{Count: MaxWanted + 1},
		"want, beyond all numbers":   StateWant{First: math.MaxUint32, Count: 1},
	} {
		if got, err := messageDecoders()[m.Type()](m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: decoded %+v, %v", name, got, err)
		}
	}
	if got, err := decodeAs[Refuse]([]byte("\x01\x02a\n")); !errors.Is(err, ErrMessage) {
		t.Errorf("refuse, detail with a newline: decoded %+v, %v", got, err)
	}
}

// A refusal is always sent, whatever its detail.
func TestRefusalDetail(t *testing.T) {
	cases := []struct{ detail, want string }{
		{"the layout differs", "the layout differs"},
		{"two\nlines\x00\x7f", "two?lines??"},
		{"not \xff UTF-8", "not ? UTF-8"},
		{strings.Repeat("d", MaxDetail+1), strings.Repeat("d", MaxDetail)},
		{strings.Repeat("d", MaxDetail-1) + "é", strings.Repeat("d", MaxDetail-1)},
	}
	for _, c := range cases {
		got, err := decodeAs[Refuse](Refuse{Reason: ReasonLayout, Detail: c.detail}.Append(nil))
		if err != nil || got != (Refuse{Reason: ReasonLayout, Detail: c.want}) {
			t.Errorf("detail %q arrives as %+v, %v", c.detail, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		detail := string(rapid.SliceOf(rapid.Byte()).Draw(t, "detail"))
		got, err := decodeAs[Refuse](Refuse{Reason: ReasonBusy, Detail: detail}.Append(nil))
		if err != nil || !utf8.ValidString(got.(Refuse).Detail) {
			t.Fatalf("detail %q arrives as %+v, %v", detail, got, err)
		}
	})
}

// What Decode returns does not change when the reader's buffer is used again.
func TestDecodedMessagesOwnTheirMemory(t *testing.T) {
	for _, want := range []Message{
		Hello{Run: "digits"},
		Refuse{Reason: ReasonBusy, Detail: "later"},
		Propose{Opening: Opening{Run: "digits", SliceLen: 1, Codecs: []uint8{1, 2}}, Overlap: 1, Lanes: 1},
		Status{Slices: []uint32{1, 2}},
		Record{Signed: []byte{1, 2}},
		StateRequest{Run: "digits"},
		Manifest{Run: "digits", Server: "donor", Signature: []byte{1, 2}, Values: 1, SliceLen: 1},
	} {
		payload := want.Append(nil)
		got, err := messageDecoders()[want.Type()](payload)
		if err != nil {
			t.Fatal(err)
		}
		clear(payload)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("after its buffer was cleared the message is %+v, want %+v", got, want)
		}
	}
}

func TestCodeInfo(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, bound := range []float32{math.SmallestNonzeroFloat32, 1, math.MaxFloat32, inf} {
		payload := append(AppendCodeInfo(nil, CodeInfo{Bound: bound}), "code"...)
		if info, code, err := SplitCode(payload); err != nil || info.Bound != bound || string(code) != "code" {
			t.Errorf("bound %g: %+v, %q, %v", bound, info, code, err)
		}
	}
	for _, bound := range []float32{0, float32(math.Copysign(0, -1)), -1, -inf, nan} {
		if info, _, err := SplitCode(AppendCodeInfo(nil, CodeInfo{Bound: bound})); !errors.Is(err, ErrMessage) {
			t.Errorf("bound %g: %+v, %v", bound, info, err)
		}
	}
	good := AppendCodeInfo(nil, CodeInfo{Bound: 1})
	for cut := range len(good) {
		if _, _, err := SplitCode(good[:cut]); !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d bytes: %v", cut, err)
		}
	}
	binary.LittleEndian.PutUint32(good[4:], 1<<8)
	if _, _, err := SplitCode(good); !errors.Is(err, ErrMessage) {
		t.Errorf("reserved bytes in use: %v", err)
	}
}

func TestDiffInfo(t *testing.T) {
	for _, squared := range []float64{0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64} {
		payload := append(AppendDiffInfo(nil, DiffInfo{SquaredDistance: squared}), "code"...)
		if info, code, err := SplitDiff(payload); err != nil || info.SquaredDistance != squared || string(code) != "code" {
			t.Errorf("squared distance %g: %+v, %q, %v", squared, info, code, err)
		}
	}
	for _, squared := range []float64{-math.SmallestNonzeroFloat64, -1, math.Inf(1), math.Inf(-1), math.NaN()} {
		if info, _, err := SplitDiff(AppendDiffInfo(nil, DiffInfo{SquaredDistance: squared})); !errors.Is(err, ErrMessage) {
			t.Errorf("squared distance %g: %+v, %v", squared, info, err)
		}
	}
	good := AppendDiffInfo(nil, DiffInfo{SquaredDistance: 1})
	for cut := range len(good) {
		if _, _, err := SplitDiff(good[:cut]); !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d bytes: %v", cut, err)
		}
	}
}

func TestManifestSlices(t *testing.T) {
	for _, c := range []struct {
		values uint64
		length uint32
		want   uint64
	}{{0, 10, 0}, {10, 0, 0}, {1, 10, 1}, {10, 10, 1}, {11, 10, 2}, {20, 10, 2}, {math.MaxUint64, 1, math.MaxUint64}} {
		if got := (Manifest{Values: c.values, SliceLen: c.length}).Slices(); got != c.want {
			t.Errorf("%d values in slices of %d: %d slices, want %d", c.values, c.length, got, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	permanent := []Reason{ReasonLayout, ReasonRun, ReasonVersion, ReasonCodec, ReasonAdmission, ReasonOperator}
	seen := map[string]bool{}
	for n := range 256 {
		r := Reason(n)
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d: the name %q is empty or taken", n, name)
		}
		seen[r.String()] = true
		if remedy := r.Remedy(); strings.Count(remedy, ".") != 1 || !strings.HasSuffix(remedy, ".") {
			t.Errorf("%v: the remedy %q is not one sentence", r, remedy)
		}
		if r.Permanent() != slices.Contains(permanent, r) {
			t.Errorf("%v: permanent is %v", r, r.Permanent())
		}
		known := r >= ReasonBusy && r <= ReasonRound
		if isNamed := !strings.HasPrefix(r.String(), "reason "); isNamed != known {
			t.Errorf("reason %d: the name is %q", n, r)
		}
	}
}

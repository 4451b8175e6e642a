package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sumVectors are what members say of sums.
func sumVectors() []vector {
	name := []part{{1, "length of the name"}, {6, "name: \"fit/12\""}}
	end := func(partners ...string) []part {
		parts := []part{{1, "length of an id"}, {1, "partners: " + fmt.Sprint(len(partners))}}
		for _, id := range partners {
			parts = append(parts, part{1, "length of the id of one"}, part{len(id), "one: " + id})
		}
		return append(parts, part{1, "length of the detail"})
	}
	head := func(kind, op, stage string) []part {
		return append([]part{{1, "kind: " + kind}, {1, "operation: " + op}, {1, "stage: " + stage}}, name...)
	}
	return []vector{
		{
			name: "sum-status", about: "a participant in the sum of 1,000 numbers waits for a place, with four or more, for a minute",
			message: Sum{Kind: SumStatus, Name: "fit/12", Attempt: 0x30001, Length: 1000, Least: 4, Timeout: 60000, Term: 1},
			parts: append(append(head("1, status", "0, sum", "0, waiting"), []part{
				{8, "attempt, the last that it had a place in: 0x30001"}, {8, "length: 1000"}, {4, "least: 4"}, {4, "patience: 60000 ms"}, {4, "term: 1"}, {4, "question"},
				{4, "rank"}, {4, "size"},
			}...), end()...),
		},
		{
			name: "sum-place", about: "and gets one",
			message: Sum{Kind: SumPlace, Name: "fit/12", Attempt: 0x40001, Rank: 1, Size: 4, Partners: []string{"a", "d"}},
			parts: append(append(head("8, place", "0", "0"), []part{
				{8, "attempt: 0x40001"}, {8, "length"}, {4, "least"}, {4, "patience"}, {4, "term"}, {4, "question"}, {4, "rank: 1"}, {4, "size: 4"},
			}...), end("a", "d")...),
		},
		{
			name: "sum-commit-masked", about: "the sum with masks counts, with the seeds of three members' own",
			message: Sum{Kind: SumCommit, Op: SumMasked, Name: "fit/12", Attempt: 0x40001, Term: 1, Masks: bytes.Repeat([]byte{7}, 48)},
			parts: append(append(append(head("10, commit", "4, sum with masks", "0"), []part{
				{8, "attempt: 0x40001"}, {8, "length"}, {4, "least"}, {4, "patience"}, {4, "term: 1"}, {4, "question"}, {4, "rank"}, {4, "size"},
			}...), end()...), part{4, "bytes of masks: 48"}, part{48, "seeds, 16 bytes each"}),
		},
		{
			name: "share", about: "the last of the 24 bytes that it hands on at step 2",
			header:  Header{Type: TypeShare},
			payload: Share{Name: "fit/12", Attempt: 0x40001, Step: 2, Offset: 16, Total: 24, Values: []float64{1}}.Append(nil),
			parts: append(append([]part{}, name...), part{8, "attempt: 0x40001"}, part{4, "step: 2"}, part{8, "offset: 16"}, part{8, "total: 24"},
				part{8, "the numbers (here float64: 1)"}),
		},
	}
}

// drawMasks draws the bytes of masks of a SUM that has some.
func drawMasks(t *rapid.T, m Sum) []byte {
	if m.Op == SumMasked && (m.Kind == SumStatus || m.Kind == SumPlace || m.Kind == SumCommit) {
		return rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "masks")
	}
	return nil
}

func TestWhatNoSumSays(t *testing.T) {
	for what, payload := range map[string][]byte{
		"no kind":                 Sum{Name: "x"}.Append(nil),
		"another kind":            Sum{Kind: lastSumKind + 1, Name: "x"}.Append(nil),
		"no name":                 Sum{Kind: SumAsk}.Append(nil),
		"a place beyond the last": Sum{Kind: SumPlace, Name: "x", Rank: 3, Size: 3}.Append(nil),
		"too many partners":       Sum{Kind: SumPlace, Name: "x", Size: 3, Partners: slices.Repeat([]string{"a"}, MaxSumPartners+1)}.Append(nil),
		"too much for masks":      Sum{Kind: SumPlace, Op: SumMasked, Name: "x", Size: 3, Masks: make([]byte, MaxMasks+1)}.Append(nil),
		"a partner without an id": Sum{Kind: SumPlace, Name: "x", Size: 3, Partners: []string{"a", ""}}.Append(nil),
	} {
		var m Sum
		if err := m.Decode(payload); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, share := range map[string]Share{
		"no name":                  {Total: 8, Data: make([]byte, 8)},
		"beyond the end":           {Name: "x", Offset: 8, Total: 8, Data: make([]byte, 8)},
		"an offset beyond the end": {Name: "x", Offset: 9, Total: 8},
		"too much":                 {Name: "x", Total: 1 << 40, Data: make([]byte, MaxShare+1)},
	} {
		var m Share
		if err := m.Decode(share.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

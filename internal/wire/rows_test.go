package wire

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// rowsVectors are what holders of rows and those that train on them say.
func rowsVectors() []vector {
	return []vector{
		{
			name: "holding", about: "a holder says what it has",
			message: Holding{Kind: "digits/28x28", Rows: 60000, HeldOut: 10000, Life: 0x1122334455667788, About: []byte("{}")},
			parts: []part{
				{1, "length of the kind"}, {12, "kind: \"digits/28x28\""}, {8, "rows: 60000"}, {8, "held out: 10000"}, {8, "life: 0x1122334455667788"},
				{2, "bytes about them: 2"}, {2, "what it tells, opaque here: \"{}\""},
			},
		},
		{
			name: "want", about: "question 7: 32 rows that may come through another holder",
			header: Header{Exchange: 7}, message: Want{Rows: 32, Hops: 2},
			parts: []part{{4, "rows: 32"}, {1, "hops: 2"}, {1, "held out: 0, no"}, {8, "first: 0"}},
		},
		{
			name: "rows", about: "the second half of the answer: 32 rows, 20 of them the sender's own",
			header:  Header{Type: TypeRows, Exchange: 7},
			payload: Rows{Rows: 32, Own: 20, Offset: 4, Total: 8, Data: []byte("rows")}.Append(nil),
			parts:   []part{{4, "rows: 32"}, {4, "own: 20"}, {4, "offset: 4"}, {4, "total: 8"}, {4, "their bytes, opaque here: \"rows\""}},
		},
		{
			name: "done", about: "a gradient was computed of them",
			header: Header{Exchange: 7}, message: Done{Fate: 1}, parts: []part{{1, "fate: 1, trained"}},
		},
	}
}

// rowsMessages draw messages about rows, with every field anywhere in its range.
func rowsMessages(t *rapid.T) []func() Message {
	number := func(label string) uint64 { return rapid.Uint64().Draw(t, label) }
	return []func() Message{
		func() Message {
			h := Holding{Kind: drawText(t, 0, MaxKind), Rows: number("rows"), HeldOut: number("held out"), Life: number("life")}
			if n := rapid.IntRange(0, MaxAbout).Draw(t, "about"); n > 0 {
				h.About = make([]byte, n)
			}
			return h
		},
		func() Message {
			w := Want{Rows: rapid.Uint32Range(1, MaxWantedRows).Draw(t, "rows"), Hops: rapid.Uint8Range(1, MaxHops).Draw(t, "hops"), HeldOut: rapid.Bool().Draw(t, "held out")}
			if w.HeldOut {
				w.First = number("first")
			}
			return w
		},
		func() Message { return Done{Fate: rapid.Uint8Range(1, 3).Draw(t, "fate")} },
	}
}

func TestWhatNoHolderSays(t *testing.T) {
	for what, m := range map[string]Message{
		"a long kind":                 Holding{Kind: strings.Repeat("k", MaxKind+1)},
		"a kind with an escape":       Holding{Kind: "a\x1b[2J"},
		"too much about it":           Holding{About: make([]byte, MaxAbout+1)},
		"no rows wanted":              Want{Hops: 1},
		"too many wanted":             Want{Rows: MaxWantedRows + 1, Hops: 1},
		"no hops":                     Want{Rows: 1},
		"too many hops":               Want{Rows: 1, Hops: MaxHops + 1},
		"a place in a random order":   Want{Rows: 1, Hops: 1, First: 1},
		"no fate":                     Done{},
		"a fate that is none":         Done{Fate: 4},
		"more own than all":           Rows{Rows: 1, Own: 2},
		"more rows than can be asked": Rows{Rows: MaxWantedRows + 1, Total: 1, Data: make([]byte, 1)},
		"bytes beyond the end":        Rows{Rows: 1, Offset: 8, Total: 8, Data: make([]byte, 1)},
		"an offset that overflows":    Rows{Rows: 1, Offset: math.MaxUint32, Total: 8, Data: make([]byte, 1)},
		"endless rows":                Rows{Rows: 1, Total: MaxRowsTotal + 1, Data: make([]byte, 1)},
		"a frame that is too long":    Rows{Rows: 1, Total: MaxRowsTotal, Data: make([]byte, MaxRowsData+1)},
		"a part that says nothing":    Rows{Rows: 1, Total: 8},
	} {
		if _, err := recode(m.Type(), m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if most := len(Rows{Rows: MaxWantedRows, Total: MaxRowsTotal, Data: make([]byte, MaxRowsData)}.Append(nil)); most != maxRows {
		t.Errorf("the largest ROWS has %d bytes, want %d", most, maxRows)
	}
	for _, m := range []Message{Holding{Kind: strings.Repeat("k", MaxKind), About: make([]byte, MaxAbout)}, Want{Rows: 1, Hops: 1}, Done{Fate: 1}} {
		if most, _ := m.Type().limit(); len(m.Append(nil)) != most {
			t.Errorf("%v: the largest has %d bytes, the limit is %d", m.Type(), len(m.Append(nil)), most)
		}
	}
}

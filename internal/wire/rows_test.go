package wire

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// rowsVectors are what holders of rows and those that train on them say.
func rowsVectors() []vector {
	return []vector{
		{
			name: "want", about: "32 rows for a batch and 20 for another, which may come through another holder",
			message: Want{Hops: 2, Rows: []uint32{32, 20}},
			parts:   []part{{1, "hops: 2"}, {8, "first: 0"}, {1, "parts: 2"}, {4, "rows of the first: 32"}, {4, "rows of the second: 20"}},
		},
		{
			name: "rows", about: "the answer begins: 2 rows for the first batch, and none for the second now",
			header:  Header{Type: TypeRows},
			payload: Rows{Rows: []uint32{2, 0}, Bytes: []uint32{8, 0}, Data: []byte("rows")}.Append(nil),
			parts: []part{
				{1, "parts: 2"}, {4, "rows of the first: 2"}, {4, "rows of the second: 0"},
				{1, "parts again: 2"}, {4, "bytes of the first: 8"}, {4, "bytes of the second: 0"}, {4, "the first of their bytes, opaque here: \"rows\""},
			},
		},
		{
			name: "done", about: "the first batch was trained on, the second one is lost, and the others come back",
			message: Done{Trained: 1, Lost: 1}, parts: []part{{1, "trained: 1"}, {1, "lost: 1"}},
		},
	}
}

// rowsMessages draw messages about rows, with every field anywhere in its range.
func rowsMessages(t *rapid.T) []func() Message {
	return []func() Message{
		func() Message {
			w := Want{Hops: rapid.Uint8Range(0, MaxHops).Draw(t, "hops"), Rows: rapid.SliceOfN(rapid.Uint32Range(1, MaxRows/MaxRowParts), 1, MaxRowParts).Draw(t, "rows")}
			if w.Hops == 0 {
				w.First = rapid.Uint64().Draw(t, "first")
			}
			return w
		},
		func() Message {
			return Done{Trained: rapid.Uint8Range(0, 8).Draw(t, "trained"), Lost: rapid.Uint8Range(0, 8).Draw(t, "lost")}
		},
	}
}

func TestWhatNoHolderSays(t *testing.T) {
	list := func(n ...uint32) []uint32 { return n }
	for what, m := range map[string]Message{
		"no rows wanted":                 Want{Hops: 1, Rows: list(0)},
		"no parts wanted":                Want{Hops: 1},
		"too many wanted":                Want{Hops: 1, Rows: list(MaxRows, 1)},
		"numbers that overflow":          Want{Hops: 1, Rows: list(1<<32-1, 1)},
		"too many parts":                 Want{Hops: 1, Rows: make([]uint32, MaxRowParts+1)},
		"too many hops":                  Want{Hops: MaxHops + 1, Rows: list(1)},
		"a place in a random order":      Want{Hops: 1, First: 1, Rows: list(1)},
		"a fate of too many":             Done{Trained: 16, Lost: 1},
		"a fate that overflows":          Done{Trained: 255, Lost: 2},
		"more rows than can be asked":    Rows{Rows: list(MaxRows, 1), Bytes: list(1, 1)},
		"rows without bytes":             Rows{Rows: list(1, 1), Bytes: list(1, 0)},
		"bytes without rows":             Rows{Rows: list(1, 0), Bytes: list(1, 1)},
		"parts of which nothing is said": Rows{Rows: list(1), Bytes: list(1, 1)},
		"endless rows":                   Rows{Rows: list(1), Bytes: list(MaxRowsTotal + 1)},
		"a frame that is too long":       Rows{Rows: list(1), Bytes: list(MaxRowsTotal), Data: make([]byte, MaxRowsData+1)},
	} {
		if _, err := recode(m.Type(), m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	full := slices.Repeat(list(1), MaxRowParts)
	for _, m := range []Message{Want{Hops: 1, Rows: full}, Done{Trained: 1}, Rows{Rows: full, Bytes: full, Data: make([]byte, MaxRowsData)}} {
		if most, _ := m.Type().limit(); len(m.Append(nil)) != most {
			t.Errorf("%v: the largest has %d bytes, the limit is %d", m.Type(), len(m.Append(nil)), most)
		}
	}
}

package wire

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// valuesVectors are what programs beside the training and parameter servers say.
func valuesVectors() []vector {
	return []vector{
		{
			name: "values", about: "a gradient over 32 samples comes for ten values, computed at parameters of version 77",
			message: Values{Layout: layoutHash(), First: 200704, Count: 10, Version: 77, Samples: 32},
			parts:   []part{{32, "layout hash"}, {8, "first value: 200704"}, {8, "values: 10"}, {8, "version: 77"}, {4, "samples: 32"}},
		},
		{
			name: "served", about: "the first six of them are served here, at version 80",
			message: Served{Version: 80, Count: 6}, parts: []part{{8, "version: 80"}, {8, "values: 6"}, {1, "length of the id of another server"}},
		},
		{
			name: "served-elsewhere", about: "another member serves the others",
			message: Served{Version: 79, Server: "12D3KooW"},
			parts:   []part{{8, "version: 79"}, {8, "values: 0"}, {1, "length of the id of the server"}, {8, "server: \"12D3KooW\""}},
		},
	}
}

// valuesMessages draw messages about values, with every field anywhere in its range.
func valuesMessages(t *rapid.T) []func() Message {
	return []func() Message{
		func() Message {
			first := rapid.Uint64Range(0, math.MaxInt64-1).Draw(t, "first")
			return Values{First: first, Count: rapid.Uint64Range(1, math.MaxInt64-first).Draw(t, "count"),
				Version: rapid.Uint64().Draw(t, "version"), Samples: rapid.Uint32().Draw(t, "samples")}
		},
		func() Message {
			return Served{Version: rapid.Uint64().Draw(t, "version"), Count: rapid.Uint64().Draw(t, "count"), Server: rapid.StringMatching(`[a-z]{0,64}`).Draw(t, "server")}
		},
	}
}

func TestValuesThatNobodyAsksFor(t *testing.T) {
	for what, m := range map[string]Message{
		"no values":       Values{First: 1},
		"values beyond":   Values{First: math.MaxInt64, Count: 1},
		"values far away": Values{First: math.MaxUint64, Count: 2},
		"a long id":       Served{Server: string(make([]byte, MaxPeerName+1))},
		"an unclean id":   Served{Server: "a\x00"},
	} {
		if _, err := recode(m.Type(), m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

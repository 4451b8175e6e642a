package cli

import "testing"

// TestFirstWords shows where the help of a flag ends if a line has no room for it.
func TestFirstWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"has room", "has room"},
		{"all of this fits it.", "all of this fits it."},
		{"this is a clause (default 7)", "this is a clause"},
		{"this is a clause fit (7)", "this is a clause fit"},
		{"this is one (in: here, not)", "this is one"},
		{"this is it (x): and nothing else", "this is it (x)"},
		{"this is it; nothing else is", "this is it"},
		{"no: a clause too short is none", "no: a clause too ..."},
		{"averyveryverylongsingleword", " ..."},
	} {
		if got := firstWords(c.text, 20); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

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
		{"no: a clause too short is none", "no: a clause too short is none"},
		{"names: one, two, three, four or five (default one)", "names: one, two, three, four or five"},
		{"a rate (default 1 for a, 2 for b)", "a rate"},
		{"averyveryverylongsingleword", "averyveryverylongsingleword"},
	} {
		if got := firstWords(c.text, 20); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestWrapped shows that a list of names is told whole, in as many lines as it takes.
func TestWrapped(t *testing.T) {
	for text, want := range map[string]string{
		"has room":                         "has room",
		"one, two, three, four, five, six": "one, two, three,\n  four, five, six",
		"averyveryverylongsingleword":      "averyveryverylongsingleword",
	} {
		if got := wrapped(text, 16, "  "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

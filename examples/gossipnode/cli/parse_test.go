package cli

import "testing"

// FuzzParseConfig shows that no text makes the parser panic, and that what it
// lets through is keys with plain values.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("batch: 5\njoin: [a:1, b:2]\n"))
	f.Add([]byte("a: &x [1]\nb: *x\n"))
	f.Add([]byte("# nothing\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parseConfig(text)
		for _, e := range entries {
			if err != nil || !e.list && len(e.values) != 1 {
				t.Fatalf("entry %+v beside error %v", e, err)
			}
		}
	})
}

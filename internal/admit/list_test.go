package admit

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// FuzzAllowed: whatever a list holds, it is refused with the number of a line, or every
// id on it is one word, and the list made of these ids is the same list.
func FuzzAllowed(f *testing.F) {
	f.Add([]byte("# nobody\n\n"))
	f.Add([]byte("one # first\n\ttwo\r\none"))
	f.Add([]byte("one two\n"))
	f.Add([]byte("\xff\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		anything := func(transport.PeerID) error { return nil }
		ids, err := parseAllowed(content, anything)
		if err != nil {
			return
		}
		var again []byte
		for id := range ids {
			if transport.CheckID(id) != nil || id == "" {
				t.Fatalf("%q is on the list", id)
			}
			again = fmt.Appendln(again, id)
		}
		same, err := parseAllowed(again, anything)
		if err != nil || len(same) != len(ids) {
			t.Fatalf("%q gives %v, %v, want %v", again, same, err, ids)
		}
	})
}

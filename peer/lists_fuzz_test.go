package peer

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// FuzzAllowed: whatever a list holds, it is refused with the number of a line, or every
// id on it is one word, and the list made of these ids is the same list.
func FuzzAllowed(f *testing.F) {
	f.Add([]byte("# nobody\n\n"))
	f.Add([]byte("one # first\n\ttwo\r\none"))
	f.Add([]byte("one two\n"))
	f.Add([]byte("\xff\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		anything := func(seam.PeerID) error { return nil }
		ids, err := parseAllowed(content, anything)
		if err != nil {
			return
		}
		var again []byte
		for id := range ids {
			if checkID(id) != nil || id == "" {
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

// FuzzPartners: whatever the file holds, few partners are read from it, and written
// they are read again.
func FuzzPartners(f *testing.F) {
	f.Add([]byte("a mem:a mem:b\nb mem:c\n"))
	f.Add([]byte("\x00 x\na\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		partners := parsePartners(content)
		if len(partners) > maxGood {
			t.Fatalf("%d partners", len(partners))
		}
		if again := parsePartners(formatPartners(partners)); fmt.Sprint(again) != fmt.Sprint(partners) {
			t.Fatalf("read %v, then %v", partners, again)
		}
	})
}

package arrival

import (
	"fmt"
	"testing"
)

// FuzzPartners: whatever the file holds, few partners are read from it, and written
// they are read again.
func FuzzPartners(f *testing.F) {
	f.Add([]byte("a mem:a mem:b\nb mem:c\n"))
	f.Add([]byte("\x00 x\na\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		partners := parsePartners(content)
		if len(partners) > MaxPartners {
			t.Fatalf("%d partners", len(partners))
		}
		if again := parsePartners(formatPartners(partners)); fmt.Sprint(again) != fmt.Sprint(partners) {
			t.Fatalf("read %v, then %v", partners, again)
		}
	})
}
func TestPartnersAreReadBack(t *testing.T) {
	partners := []Partner{{"a", []string{"mem:a"}}, {"b", []string{"/ip4/192.0.2.1/tcp/4001", "mem:b"}}}
	got := parsePartners(formatPartners(partners))
	if fmt.Sprint(got) != fmt.Sprint(partners) {
		t.Errorf("read %v, want %v", got, partners)
	}
	got = parsePartners([]byte("alone\n\xff mem:x\nmany 1 2 3 4 5\n\nc mem:c\n"))
	if fmt.Sprint(got) != "[{c [mem:c]}]" {
		t.Errorf("of malformed lines %v is read", got)
	}
}

package arrival

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer/transport"
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

// TestWhatIsRemembered: good partners of this life before those of earlier ones, when there is news and it is time, and at
// the end; a new line in an address names nobody.
func TestWhatIsRemembered(t *testing.T) {
	identities := filepath.Join(t.TempDir(), "known")
	now, good := time.Unix(1e9, 0), []transport.PeerID{"a", "b", "trap", "nowhere"}
	members := []transport.Record{
		{Peer: "b", Addresses: []string{"mem:b", "mem:b2"}},
		{Peer: "bad", Addresses: []string{"mem:bad"}}, // no exchange with it went well
		{Peer: "trap", Addresses: []string{"mem:trap\nvictim mem:trap"}},
		{Peer: "nowhere"},
	}
	if err := os.WriteFile(identities+".partners", []byte("old mem:old\nb mem:elsewhere\nkept mem:other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Recall(identities, []Partner{{"kept", []string{"mem:kept"}}}, zap.NewNop())
	if got := fmt.Sprint(m.Past, m.IDs()); got != "[{kept [mem:kept]} {old [mem:old]} {b [mem:elsewhere]}] [kept old b]" {
		t.Errorf("recalled %s", got)
	}
	expect := func(when, want string) {
		t.Helper()
		if text, err := os.ReadFile(identities + ".partners"); err != nil || string(text) != want {
			t.Errorf("%s the file says %q, %v; want %q", when, text, err, want)
		}
	}
	const before, first = "old mem:old\nb mem:elsewhere\nkept mem:other\n", "b mem:b mem:b2\nkept mem:kept\nold mem:old\n"
	m.Write(now, members, good, false)
	expect("before an exchange", before)
	m.Proved(false) // the first is news in any case
	m.Write(now, members, good, false)
	expect("after one", first)
	members = append(members, transport.Record{Peer: "a", Addresses: []string{"mem:a"}})
	m.Proved(false)
	m.Write(now.Add(time.Hour), members, good, true)
	expect("without a new partner", first)
	m.Proved(true)
	m.Write(now.Add(writeEvery-1), members, good, false)
	expect("too soon", first)
	m.Write(now.Add(writeEvery-1), members, good, true)
	expect("at the end", "b mem:b mem:b2\na mem:a\nkept mem:kept\nold mem:old\n")
}

// TestAFileThatCannotBe is said, and keeps no peer from its run; no file is none.
func TestAFileThatCannotBe(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	identities := filepath.Join(t.TempDir(), "known")
	if m := Recall(identities, nil, zap.New(core)); len(m.Past) > 0 || logged.Len() > 0 {
		t.Errorf("where there is no file it says %v", logged.All())
	}
	if err := os.Mkdir(identities+".partners", 0o700); err != nil {
		t.Fatal(err)
	}
	m := Recall(identities, nil, zap.New(core))
	m.Proved(true)
	m.Write(time.Unix(1e9, 0), []transport.Record{{Peer: "a", Addresses: []string{"mem:a"}}}, []transport.PeerID{"a"}, true)
	for _, said := range []string{"cannot read", "will be forgotten"} {
		if logged.FilterMessageSnippet(said).Len() != 1 {
			t.Errorf("it does not say %q: %v", said, logged.All())
		}
	}
	none := Recall("", []Partner{{"a", nil}}, nil)
	none.Proved(true)
	none.Write(time.Unix(1e9, 0), nil, nil, true)
	if len(none.Past) != 1 {
		t.Error("who is known is forgotten")
	}
	var many strings.Builder
	for i := range 2 * MaxPartners {
		fmt.Fprintf(&many, "p%d mem:p\n", i)
	}
	if n := len(parsePartners([]byte(many.String()))); n != MaxPartners {
		t.Errorf("%d partners are read", n)
	}
}

package p2pnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	mss "github.com/multiformats/go-multistream"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func multiaddrs(t testing.TB, texts ...string) []ma.Multiaddr {
	t.Helper()
	parsed := make([]ma.Multiaddr, len(texts))
	for i, text := range texts {
		var err error
		if parsed[i], err = ma.NewMultiaddr(text); err != nil {
			t.Fatal(err)
		}
	}
	return parsed
}

func idOf(t testing.TB, seed byte) peer.ID {
	t.Helper()
	key, err := crypto.UnmarshalEd25519PrivateKey(seeded(seed))
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestParseAddress(t *testing.T) {
	id := idOf(t, 1)
	for text, want := range map[string]address{
		"192.0.2.7:4001":                    {"192.0.2.7", 4001, anyFamily, "", ""},
		"[2001:DB8::7]:4001":                {"2001:db8::7", 4001, anyFamily, "", ""},
		"[::ffff:192.0.2.7]:1":              {"192.0.2.7", 1, anyFamily, "", ""},
		"Seed.Example.org.:65535":           {"seed.example.org", 65535, anyFamily, "", ""},
		"/ip4/192.0.2.7/tcp/4001":           {"192.0.2.7", 4001, anyFamily, "", ""},
		"/ip6/2001:db8::7/tcp/1":            {"2001:db8::7", 1, anyFamily, "", ""},
		"/dns/seed/tcp/1":                   {"seed", 1, anyFamily, "", ""},
		"/dns4/seed/tcp/1":                  {"seed", 1, onlyIPv4, "", ""},
		"/dns6/seed/tcp/1":                  {"seed", 1, onlyIPv6, "", ""},
		"/dns/a_b/tcp/1/p2p/" + id.String(): {"a_b", 1, anyFamily, id, ""},
		"relay:" + id.String():              {"", 0, anyFamily, "", id},
		"/ip4/192.0.2.7/tcp/1/p2p/" + id.String() + "/p2p-circuit":                    {"192.0.2.7", 1, anyFamily, "", id},
		"/dns/a/tcp/1/p2p/" + id.String() + "/p2p-circuit/p2p/" + idOf(t, 2).String(): {"a", 1, anyFamily, idOf(t, 2), id},
	} {
		if got, err := parseAddress(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseListen(t *testing.T) {
	for text, want := range map[string]string{
		":4001": "/ip4/0.0.0.0/tcp/4001", "0.0.0.0:0": "/ip4/0.0.0.0/tcp/0", "[::]:1": "/ip6/::/tcp/1",
		"127.0.0.1:0": "/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/0": "/ip6/::1/tcp/0",
	} {
		if got, err := parseListen(text); err != nil || got.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "localhost", "host:1", "127.0.0.1", "/ip4/127.0.0.1/udp/1", "/ip4/127.0.0.1/tcp/1/p2p/" + idOf(t, 1).String(), ":x"} {
		if _, err := parseListen(text); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v, want ErrAddress", text, err)
		}
	}
}

// TestParseListenOnLocalhost: this machine's own address is 127.0.0.1, and ::1 where there is no other.
func TestParseListenOnLocalhost(t *testing.T) {
	v4, v6, out := &net.IPNet{IP: net.IPv4(127, 0, 0, 1)}, &net.IPNet{IP: net.IPv6loopback}, &net.IPNet{IP: net.IPv4(192, 0, 2, 7)}
	for want, of := range map[string][][]net.Addr{"127.0.0.1": {nil, {out}, {v4, v6}, {out, v6, v4}}, "::1": {{v6}, {out, v6}}} {
		for _, addresses := range of {
			if got := ownAddress(addresses).String(); got != want {
				t.Errorf("of %v: %s, want %s", addresses, got, want)
			}
		}
	}
	addresses, _ := net.InterfaceAddrs()
	for text, port := range map[string]uint16{"localhost:0": 0, "LocalHost:4001": 4001, "/dns/localhost/tcp/7": 7} {
		want := netip.AddrPortFrom(ownAddress(addresses), port)
		got, err := parseListen(text)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := manet.ToNetAddr(got); err != nil || at.String() != want.String() {
			t.Errorf("%q is %v, %v; want %s", text, at, err, want)
		}
	}
}

// FuzzAddress checks that what is taken is dialled as it was meant: the text of
// a parsed address parses to the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:4001", "[::1]:1", "seed:1", "/dns6/seed/tcp/1", "/ip4/1.2.3.4/tcp/1/p2p/" + idOf(f, 1).String(), "/", "%:", "relay:" + idOf(f, 1).String(), "/ip4/1.2.3.4/tcp/1/p2p/" + idOf(f, 1).String() + "/p2p-circuit"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseListen(text); err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("listening: %v", err)
		}
		a, err := parseAddress(text)
		if err != nil {
			if !errors.Is(err, ErrAddress) {
				t.Errorf("%v is no ErrAddress", err)
			}
			return
		}
		if again, err := parseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q is %+v, whose text %q is %+v, %v", text, a, a, again, err)
		}
		if a.relay != "" {
			return // behind a relay no identity is learned
		}
		if known, err := parseKnown([]byte(a.key() + " " + string(idOf(t, 1).String()))); err != nil || len(known[a.key()]) != 1 {
			t.Errorf("the key %q cannot be remembered: %v", a.key(), err)
		}
	})
}

// FuzzKnown checks that a file that is taken stays readable when identities are
// added, and loses nothing.
func FuzzKnown(f *testing.F) {
	id := idOf(f, 1).String()
	for _, seed := range []string{"", "# none\n", "seed:1 " + id, "\r\n\t[::1]:1\t" + id + "\r\n", "seed:1\n", "seed:1 " + id + " x"} {
		f.Add([]byte(seed))
	}
	added := transport.PeerID(idOf(f, 2).String())
	f.Fuzz(func(t *testing.T, content []byte) {
		before, err := parseKnown(content)
		if err != nil {
			return
		}
		file := &knownFile{memory: content}
		if err := file.remember("new:1", []transport.PeerID{added}); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(file.memory, content) {
			t.Errorf("%q became %q", content, file.memory)
		}
		before["new:1"] = append(slices.DeleteFunc(before["new:1"], func(id transport.PeerID) bool { return id == added }), added)
		for address, want := range before {
			got, err := file.lookup(address)
			if err != nil || len(got) != len(want) {
				t.Errorf("%s is %v, %v; want %v", address, got, err, want)
			}
		}
	})
}

func TestKnownFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known")
	for content, want := range map[string]string{
		"seed:1 x\n":                        "line 1",
		"# fine\n\nseed:1\n":                "line 3",
		"seed " + idOf(t, 1).String():       "line 1",
		strings.Repeat("#\n", maxKnownFile): "more than",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{Listen: []string{}, Known: path})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("a bad file: %v, want the file and %q", err, want)
		}
	}
}

// TestKnownCannotBeWritten joins all the same: to refuse would trade the run for
// a line in a file.
func TestKnownCannotBeWritten(t *testing.T) {
	log, logs := logged()
	a := start(t, Config{Listen: []string{}, Known: filepath.Join(t.TempDir(), "missing", "known"), Log: log})
	b := start(t, loopback())
	if _, err := a.Connect(t.Context(), hostPort(t, b)); err != nil {
		t.Fatal(err)
	}
	if logs.FilterMessageSnippet("cannot remember").Len() != 1 {
		t.Error("nothing was logged")
	}
}

func TestPreambleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOfN(rapid.Byte(), 0, transport.MaxRunName).Draw(t, "name"))
		said := appendOpening(nil, speak, name)
		preamble := said[len(newAnswer(speak).yes):]
		rest := bytes.NewReader(append(preamble, "rest"...))
		got, err := readPreamble(iotest.OneByteReader(rest))
		if err != nil || got != name || rest.Len() != len("rest") {
			t.Fatalf("%q came back as %q with %d bytes left, %v", name, got, rest.Len(), err)
		}
	})
}

func FuzzPreamble(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x06digits", "\x06dig", "\x40" + strings.Repeat("r", 64), "\x41", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := readPreamble(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(name) > transport.MaxRunName || !bytes.HasPrefix(b, append([]byte{byte(len(name))}, name...)) {
			t.Errorf("%q was read from %q", name, b)
		}
	})
}

// TestAnswerAgainstLibp2p lets the library answer what negotiate.go says, for
// protocols shorter and longer than a refusal.
func TestAnswerAgainstLibp2p(t *testing.T) {
	for _, protocol := range []transport.Protocol{"/a", "/ab", transport.ProtocolExchange, transport.Protocol("/" + strings.Repeat("x", maxProtocol-1))} {
		for _, spoken := range []bool{true, false} {
			mux := mss.NewMultistreamMuxer[string]()
			if spoken {
				mux.AddHandler(string(protocol), nil)
			}
			rw := &script{in: bytes.NewReader(appendOpening(nil, protocol, run))}
			_, _, err := mux.Negotiate(rw)
			if (err == nil) != spoken {
				t.Fatalf("libp2p on %s: %v", protocol, err)
			}
			if spoken {
				if left, err := readPreamble(rw.in); err != nil || left != run {
					t.Errorf("after %s the run is %q, %v", protocol, left, err)
				}
			}
			err = newAnswer(protocol).read(iotest.OneByteReader(&rw.out))
			if spoken && err != nil || !spoken && !errors.Is(err, transport.ErrUnknownProtocol) {
				t.Errorf("libp2p's answer to %s (spoken: %v) is %v", protocol, spoken, err)
			}
			if spoken && rw.out.Len() != 0 {
				t.Errorf("%d bytes of the answer were not read", rw.out.Len())
			}
		}
	}
}

// script is a connection that reads one thing and keeps what is written.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *script) Close() error                { return nil }

// FuzzAnswer feeds the opener any answer, in pieces with timeouts between them:
// it must come to the same end as in one piece, having read the same.
func FuzzAnswer(f *testing.F) {
	a := newAnswer(speak)
	for _, seed := range [][]byte{a.yes, a.no, a.yes[:30], append(slices.Clone(a.yes), "rest"...), append(slices.Clone(a.no), "rest"...), nil, []byte("\xff")} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, said []byte, every uint8) {
		whole := bytes.NewReader(said)
		want := newAnswer(speak).read(whole)
		pieces := &hesitant{r: bytes.NewReader(said), every: int(every%8) + 1}
		a := newAnswer(speak)
		got := a.read(pieces)
		for isTimeout(got) {
			got = a.read(pieces)
		}
		if (got == nil) != (want == nil) || errors.Is(got, transport.ErrUnknownProtocol) != errors.Is(want, transport.ErrUnknownProtocol) {
			t.Errorf("in pieces %v, as a whole %v", got, want)
		}
		if want == nil && (!bytes.HasPrefix(said, a.yes) || whole.Len() != len(said)-len(a.yes) || pieces.r.Len() != whole.Len()) {
			t.Errorf("agreed to %q with %d and %d bytes left", said, whole.Len(), pieces.r.Len())
		}
	})
}

// hesitant times out before every piece.
type hesitant struct {
	r     *bytes.Reader
	every int
	ready bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.ready = !h.ready; h.ready {
		return 0, timeoutError{}
	}
	return h.r.Read(p[:min(len(p), h.every)])
}

var _ io.Reader = (*hesitant)(nil)

func TestBookForgetsTheOldest(t *testing.T) {
	b := newBook()
	known := func(id peer.ID) int { addresses, _ := b.Peek(id); return len(addresses) }
	name := func(i int) peer.ID { return peer.ID([]byte{byte(i >> 8), byte(i)}) }
	for i := range maxBookPeers {
		b.Add(name(i), []address{{}})
	}
	b.Add(name(0), []address{{}, {}}) // now the newest
	b.Add(name(maxBookPeers), []address{{}})
	if b.Len() != maxBookPeers || known(name(0)) != 2 || known(name(1)) != 0 || known(name(maxBookPeers)) != 1 {
		t.Errorf("%d peers; the renewed one has %d addresses, the oldest %d", b.Len(), known(name(0)), known(name(1)))
	}
}

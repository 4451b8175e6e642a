package p2pnet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// freeAddress is a loopback address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestConnectForms(t *testing.T) {
	b := start(t, loopback())
	handle(t, b, speak, run, echo)
	for _, text := range []string{
		b.JoinAddresses()[0], b.Addresses()[0], hostPort(t, b),
		"localhost" + port(t, b), "LOCALHOST." + port(t, b),
		"/dns4/localhost/tcp/" + port(t, b)[1:], "/dns/localhost/tcp/" + port(t, b)[1:] + "/p2p/" + string(b.Self()),
	} {
		log, logs := logged()
		a := start(t, Config{Listen: []string{}, Log: log})
		for range 2 { // the second finds the connection and the memory
			got, err := a.Connect(t.Context(), text)
			if err != nil || got != b.Self() {
				t.Errorf("connecting to %s: %q, %v", text, got, err)
			}
		}
		if got := ask(t, open(t, a, b, speak, run), "x"); got != "x" {
			t.Errorf("after connecting to %s the echo is %q", text, got)
		}
		want := 1
		if strings.Contains(text, "/p2p/") {
			want = 0
		}
		if n := logs.FilterMessageSnippet("learned the identity").Len(); n != want {
			t.Errorf("connecting to %s logged %d learned identities, want %d", text, n, want)
		}
		if n := a.Connections(); n != 1 {
			t.Errorf("connecting to %s made %d connections", text, n)
		}
	}
}

func TestIPv6(t *testing.T) {
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 loopback here")
	}
	probe.Close()
	b := start(t, Config{Listen: []string{"[::1]:0"}})
	a := start(t, Config{Listen: []string{}})
	text := hostPort(t, b)
	if !strings.HasPrefix(text, "[::1]:") {
		t.Fatalf("listening at %s", text)
	}
	if got, err := a.Connect(t.Context(), text); err != nil || got != b.Self() {
		t.Errorf("connecting to %s: %q, %v", text, got, err)
	}
}

func TestBadAddresses(t *testing.T) {
	a := start(t, Config{Listen: []string{}})
	for _, text := range []string{
		"", "seed", ":4001", "seed:", "seed:0", "seed:65536", "seed:http", "0.0.0.0:4001", "[::]:4001", "a b:1",
		"fe80::1:4001", "[fe80::1%eth0]:4001", "/ip4/127.0.0.1", "/ip4/127.0.0.1/udp/4001/quic-v1", "/dnsaddr/x/tcp/1",
		"/ip4/127.0.0.1/tcp/4001/p2p/nobody", "/ip4/127.0.0.1/tcp/4001/p2p-circuit", "http://seed:4001",
		string(a.Self()), strings.Repeat("x", 10_000),
	} {
		_, err := a.Connect(t.Context(), text)
		if !errors.Is(err, ErrAddress) {
			t.Errorf("connecting to %q: %v, want ErrAddress", text, err)
		} else if !strings.Contains(err.Error(), "seed.example.org:4001") || len(err.Error()) > 1000 {
			t.Errorf("the error shows no right form, or is too long: %v", err)
		}
	}
}

func TestConnectToSelf(t *testing.T) {
	b := start(t, loopback())
	for _, text := range []string{hostPort(t, b), b.Addresses()[0], b.JoinAddresses()[0], "localhost" + port(t, b)} {
		if _, err := b.Connect(t.Context(), text); !errors.Is(err, transport.ErrSelf) {
			t.Errorf("connecting to %s: %v, want transport.ErrSelf", text, err)
		}
	}
	if _, err := b.Open(t.Context(), b.Self(), speak, run); !errors.Is(err, transport.ErrSelf) {
		t.Errorf("opening a stream to oneself: %v, want transport.ErrSelf", err)
	}
}

// TestTwinIsNamedAtBothEnds: another process with this one's key is told from this one itself,
// by address and by id, and is told as well, once in a while.
func TestTwinIsNamedAtBothEnds(t *testing.T) {
	_, key, _ := ed25519.GenerateKey(nil)
	core, logged := observer.New(zap.WarnLevel)
	first := loopback()
	first.Identity, first.Log = key, zap.New(core)
	there := start(t, first)
	here := loopback()
	here.Identity = key
	copied := start(t, here)
	for _, text := range []string{hostPort(t, there), there.JoinAddresses()[0]} {
		if _, err := copied.Connect(t.Context(), text); !errors.Is(err, transport.ErrDuplicate) {
			t.Errorf("connecting to %s: %v, want transport.ErrDuplicate", text, err)
		}
	}
	if _, err := copied.Connect(t.Context(), hostPort(t, copied)); !errors.Is(err, transport.ErrSelf) {
		t.Errorf("connecting to itself: %v, want transport.ErrSelf", err)
	}
	for logged.FilterMessageSnippet("another process with this peer's key").Len() == 0 {
		time.Sleep(time.Millisecond) // the test's timeout bounds it
	}
	if err := there.Close(); err != nil { // when both handshakes have ended
		t.Error(err)
	}
	if n := logged.FilterMessageSnippet("another process with this peer's key").Len(); n != 1 {
		t.Errorf("%d warnings of two handshakes", n)
	}
}

// TestRetryAfterFailure dials a port where nothing listens, and again once
// somebody does: libp2p alone would refuse the second dial for 5 s.
func TestRetryAfterFailure(t *testing.T) {
	text := freeAddress(t)
	key := seeded(3)
	self := start(t, Config{Identity: key, Listen: []string{}}).Self()
	full := "/ip4/127.0.0.1/tcp" + strings.Replace(text[strings.LastIndex(text, ":"):], ":", "/", 1) + "/p2p/" + string(self)
	a := start(t, Config{Listen: []string{}})
	a.Learn(self, []string{text})
	attempts := map[string]func() error{
		"host:port": func() error { _, err := a.Connect(t.Context(), text); return err },
		"multiaddr": func() error { _, err := a.Connect(t.Context(), full); return err },
		"name": func() error {
			_, err := a.Connect(t.Context(), "localhost"+text[strings.LastIndex(text, ":"):])
			return err
		},
		"open": func() error {
			s, err := a.Open(t.Context(), self, speak, run)
			if err == nil {
				s.Reset()
			}
			return err
		},
	}
	for name, attempt := range attempts {
		for range 2 {
			err := attempt()
			if !errors.Is(err, transport.ErrUnreachable) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s of a dead port: %v, want ErrUnreachable and why", name, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error has several lines: %v", name, err)
			}
		}
	}
	b := start(t, Config{Identity: key, Listen: []string{text}})
	if other, err := New(Config{Listen: []string{text}}); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "at a port that no other process uses") {
		t.Errorf("a second one on %s: %v (%v), want an error that says what to do", text, err, other)
	}
	for name, attempt := range attempts {
		if err := attempt(); err != nil {
			t.Errorf("%s once the peer is up: %v", name, err)
		}
	}
	eventually(t, "the peer has one connection", func() bool { return b.Connections() == 1 })
}

func TestUnknownWhereabouts(t *testing.T) {
	a, b := start(t, Config{Listen: []string{}}), start(t, Config{Listen: []string{}})
	if _, err := a.Open(t.Context(), b.Self(), speak, run); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("opening to a peer of which nothing is known: %v, want ErrUnreachable", err)
	}
	if _, err := a.Open(t.Context(), "nobody", speak, run); err == nil {
		t.Error("opening to a malformed id succeeded")
	}
}

// TestAWebServerIsNoPeer, by an address with an id or without: such as a peer's own metrics.
func TestAWebServerIsNoPeer(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	at := strings.TrimPrefix(web.URL, "http://")
	a := start(t, Config{Listen: []string{}})
	for _, text := range []string{at, "/ip4/127.0.0.1/tcp/" + at[strings.LastIndex(at, ":")+1:] + "/p2p/" + string(start(t, Config{Listen: []string{}}).Self())} {
		if _, err := a.Connect(t.Context(), text); !errors.Is(err, transport.ErrUnreachable) || !strings.Contains(err.Error(), "no peer answers there: failed to negotiate") {
			t.Errorf("connecting to %s: %v", text, err)
		}
	}
}

func TestWrongIdentity(t *testing.T) {
	b, other := start(t, loopback()), start(t, loopback())
	a := start(t, Config{Listen: []string{}})
	text := b.Addresses()[0] + "/p2p/" + string(other.Self())
	_, err := a.Connect(t.Context(), text)
	wrong, ok := errors.AsType[*WrongIdentityError](err)
	if !ok || wrong.Wanted != other.Self() || wrong.Proved != b.Self() || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("connecting to %s: %v", text, err)
	}
	if _, err := a.Open(t.Context(), other.Self(), speak, run); !errors.Is(err, transport.ErrUnreachable) || errors.As(err, &wrong) {
		t.Errorf("the wrong address was remembered: %v", err)
	}
}

// TestLearn replaces good addresses with bad ones and the other way round, and
// offers what must be left out.
func TestLearn(t *testing.T) {
	b := start(t, loopback())
	other := start(t, Config{Listen: []string{}})
	handle(t, b, speak, run, echo)
	try := func(learn ...[]string) error {
		a := start(t, Config{Listen: []string{}})
		for _, addresses := range learn {
			a.Learn(b.Self(), addresses)
		}
		_, err := a.Open(t.Context(), b.Self(), speak, run)
		return err
	}
	good, dead := b.Addresses(), []string{freeAddress(t)}
	for name, err := range map[string]error{
		"bare":     try(good),
		"full":     try(b.JoinAddresses()),
		"a name":   try([]string{"localhost" + port(t, b)}),
		"with bad": try(append([]string{"garbage", "/ip4/127.0.0.1/tcp/1/p2p/" + string(other.Self())}, good...)),
		"replaced": try(dead, good),
	} {
		if err != nil {
			t.Errorf("learned %s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"nothing":        try(nil),
		"replaced":       try(good, dead),
		"another's":      try([]string{good[0] + "/p2p/" + string(other.Self())}),
		"then forgotten": try(good, nil),
	} {
		if !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("learned %s: %v, want ErrUnreachable", name, err)
		}
	}
}

// TestIdentityChanged restarts a peer under another key at the same port, and
// then follows the remedy that the error gives.
func TestIdentityChanged(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "known")} {
		a := start(t, Config{Listen: []string{}, Known: file})
		first := start(t, loopback())
		text := hostPort(t, first)
		if _, err := a.Connect(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		first.Close()
		second := start(t, Config{Listen: []string{text}})
		_, err := a.Connect(t.Context(), text)
		changed, ok := errors.AsType[*IdentityChangedError](err)
		if !ok || changed.Proved != second.Self() || !slices.Equal(changed.Remembered, []transport.PeerID{first.Self()}) || changed.Address != text {
			t.Fatalf("connecting to the successor: %v", err)
		}
		if !strings.Contains(err.Error(), changed.File) || changed.File != file {
			t.Errorf("the error does not name %q: %v", file, err)
		}
		if second.Connections() != 0 {
			t.Error("connected all the same")
		}
		if file == "" {
			continue
		}
		b := start(t, Config{Listen: []string{}, Known: file})
		if _, err := b.Connect(t.Context(), text); !errors.As(err, &changed) {
			t.Errorf("another process with the same file: %v", err)
		}
		if info, err := os.Stat(file); err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o600) {
			t.Errorf("the file's mode is %v, %v", info.Mode(), err)
		}
		if err := os.WriteFile(file, []byte("# nobody\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Connect(t.Context(), text); err != nil || got != second.Self() {
			t.Errorf("after the line was removed: %q, %v", got, err)
		}
		content, _ := os.ReadFile(file)
		if want := "# nobody\n" + text + " " + string(second.Self()) + "\n"; string(content) != want {
			t.Errorf("the file holds %q, want %q", content, want)
		}
	}
}

// TestSeveralBehindOneName joins a name behind which several peers answer, one
// address is dead and one is the joiner itself.
func TestSeveralBehindOneName(t *testing.T) {
	a := start(t, loopback())
	seeds := []*Transport{start(t, loopback()), start(t, loopback())}
	to := address{host: "seed.example.org", port: 4001, family: anyFamily}
	var behind []string
	for _, s := range append(seeds, a) {
		behind = append(behind, s.Addresses()[0])
	}
	behind = append(behind, "/ip4/127.0.0.1/tcp"+strings.Replace(freeAddress(t), "127.0.0.1:", "/", 1))
	if _, err := a.meet(t.Context(), to, multiaddrs(t, behind...)); err != nil {
		t.Fatal(err)
	}
	remembered, err := a.known.lookup(to.key())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(remembered)
	want := []transport.PeerID{seeds[0].Self(), seeds[1].Self()}
	slices.Sort(want)
	if !slices.Equal(remembered, want) {
		t.Errorf("remembered %v, want both seeds %v", remembered, want)
	}
	// Either seed is as good as the other from now on; a stranger is not.
	if got, err := a.meet(t.Context(), to, multiaddrs(t, seeds[1].Addresses()[0])); err != nil || got != seeds[1].id {
		t.Errorf("with one seed left: %s, %v", got, err)
	}
	stranger := start(t, loopback())
	if _, err := a.meet(t.Context(), to, multiaddrs(t, stranger.Addresses()[0])); err == nil {
		t.Error("a stranger behind the name was trusted")
	}
	if got, err := a.meet(t.Context(), to, multiaddrs(t, stranger.Addresses()[0], seeds[0].Addresses()[0])); err != nil || got != seeds[0].id {
		t.Errorf("with a stranger beside a seed: %s, %v", got, err)
	}
	if stranger.Connections() != 0 {
		t.Error("connected to a stranger")
	}
}

func TestContextEndsConnect(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a := start(t, Config{Listen: []string{}})
	if _, err := a.Connect(within(t, 50*time.Millisecond), silent.Addr().String()); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("connecting to a silent port: %v, want the context's error and ErrUnreachable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	if _, err := a.Open(ctx, b.Self(), speak, run); !errors.Is(err, context.Canceled) {
		t.Errorf("opening with an ended context: %v", err)
	}
	if _, err := a.Connect(t.Context(), hostPort(t, b)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Open(ctx, b.Self(), speak, run); !errors.Is(err, context.Canceled) {
		t.Errorf("opening on a connection with an ended context: %v", err)
	}
}

// TestMutualConnect dials both ways at once, many times over.
func TestMutualConnect(t *testing.T) {
	a, b := start(t, loopback()), start(t, loopback())
	handle(t, a, speak, run, echo)
	handle(t, b, speak, run, echo)
	var dialling sync.WaitGroup
	for range 4 {
		for _, way := range [][2]*Transport{{a, b}, {b, a}} {
			dialling.Go(func() {
				if _, err := way[0].Connect(t.Context(), hostPort(t, way[1])); err != nil {
					t.Errorf("connecting: %v", err)
					return
				}
				if got := ask(t, open(t, way[0], way[1], speak, run), "x"); got != "x" {
					t.Errorf("echo is %q", got)
				}
			})
		}
	}
	dialling.Wait()
}

package p2pnet

import (
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func seeded(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{b}, ed25519.SeedSize))
}

func TestKeyIsTheIdentity(t *testing.T) {
	config := Config{Identity: seeded(1), Listen: []string{}}
	first, second := start(t, config), start(t, config)
	if first.Self() != second.Self() {
		t.Errorf("one key gave %s and %s", first.Self(), second.Self())
	}
	const golden = "12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"
	if first.Self() != golden {
		t.Errorf("the key of seed 1 is %s, want %s: peers would not be recognized after an update", first.Self(), golden)
	}
	if ephemeral := start(t, Config{Listen: []string{}}); ephemeral.Self() == first.Self() {
		t.Error("an ephemeral identity is not new")
	}
}

func TestSignatures(t *testing.T) {
	a, b := start(t, Config{Identity: seeded(1), Listen: []string{}}), start(t, Config{Identity: seeded(2), Listen: []string{}})
	message := []byte("a record")
	signature, err := a.Sign(message)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Verify(a.Self(), message, signature) || !a.Verify(a.Self(), message, signature) {
		t.Error("a good signature was refused")
	}
	bent := slices.Clone(signature)
	bent[0] ^= 1
	bare := ed25519.Sign(seeded(1), message)
	id := string(a.Self())
	for name, refused := range map[string]bool{
		"another peer's":       b.Verify(b.Self(), message, signature),
		"of another message":   b.Verify(a.Self(), []byte("a recorD"), signature),
		"bent":                 b.Verify(a.Self(), message, bent),
		"cut":                  b.Verify(a.Self(), message, signature[:63]),
		"none":                 b.Verify(a.Self(), message, nil),
		"of another domain":    b.Verify(a.Self(), message, bare),
		"by nobody":            b.Verify("", message, signature),
		"by a malformed id":    b.Verify(transport.PeerID(id[:len(id)-1]), message, signature),
		"by another text (id)": b.Verify(transport.PeerID(peer.ToCid(a.id).String()), message, signature),
	} {
		if refused {
			t.Errorf("a signature %s was taken", name)
		}
	}
}

// TestOtherKeysAreRefused lets a libp2p host with an ECDSA key knock.
func TestOtherKeysAreRefused(t *testing.T) {
	key, _, err := crypto.GenerateECDSAKeyPair(nil)
	if err != nil {
		key, _, err = crypto.GenerateKeyPair(crypto.ECDSA, 256)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := plainHost(t, key, nil)
	b := start(t, loopback())
	address, err := ma.NewMultiaddr(b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	// The stranger may believe for a moment that it is connected.
	h.Connect(t.Context(), peer.AddrInfo{ID: b.id, Addrs: []ma.Multiaddr{address}})
	eventually(t, "the stranger is cut off", func() bool { return len(h.Network().Conns()) == 0 })
	if b.Connections() != 0 {
		t.Error("a connection of a peer with an ECDSA key was taken")
	}
	stranger := h.Addrs()[0].String()
	if _, err := b.Connect(t.Context(), stranger); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("connecting to an ECDSA peer: %v", err)
	}
	if _, err := b.Connect(t.Context(), stranger+"/p2p/"+h.ID().String()); !errors.Is(err, ErrAddress) {
		t.Errorf("connecting to an ECDSA peer by id: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	if got := start(t, Config{Listen: []string{}}).Addresses(); len(got) != 0 {
		t.Errorf("a transport that listens nowhere has addresses %v", got)
	}
	b := start(t, Config{})
	texts := b.Addresses()
	if len(texts) == 0 || len(texts) > transport.MaxAddresses {
		t.Fatalf("addresses %v", texts)
	}
	for i, text := range texts {
		if len(text) > transport.MaxAddressSize || strings.Contains(text, "/p2p/") || strings.Contains(text, "0.0.0.0") {
			t.Errorf("address %q", text)
		}
		if strings.Contains(text, "/127.") && i != len(texts)-1 {
			t.Errorf("a loopback address is not last: %v", texts)
		}
	}
	for _, text := range b.JoinAddresses() {
		got, err := start(t, Config{Listen: []string{}}).Connect(t.Context(), text)
		if err != nil || got != b.Self() {
			t.Errorf("joining by %s: %s, %v", text, got, err)
		}
	}
}

func TestAddressOrder(t *testing.T) {
	want := []string{"/ip4/8.8.8.8/tcp/1", "/ip6/2600::1/tcp/1", "/ip4/10.0.0.1/tcp/1", "/ip6/fd00::1/tcp/1",
		"/ip4/169.254.0.1/tcp/1", "/ip4/127.0.0.1/tcp/1", "/ip6/::1/tcp/1"}
	last := -1
	for _, text := range want {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			t.Fatal(err)
		}
		if reach(a) <= last {
			t.Errorf("%s ranks %d, not after %d", text, reach(a), last)
		}
		last = reach(a)
	}
}

func TestPortInUse(t *testing.T) {
	b := start(t, loopback())
	second, err := New(Config{Listen: []string{"127.0.0.1:0", hostPort(t, b)}})
	if err == nil {
		second.Close()
		t.Fatal("two transports listen on one port")
	}
	if !strings.Contains(err.Error(), hostPort(t, b)) {
		t.Errorf("the error does not name the address: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	key := seeded(1)
	key[40] ^= 1 // the public half is another key's
	_, err := New(Config{Identity: key, Listen: []string{"nowhere:1", "udp"}, Limits: Limits{Memory: 1, Streams: -1, Idle: -1}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, fault := range []string{"Identity", "nowhere:1", `"udp"`, "Limits.Memory", "Streams", "Limits.Idle"} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("nothing said about %s: %v", fault, err)
		}
	}
}

func TestClose(t *testing.T) {
	a, b := pair(t)
	running, ended := make(chan struct{}), make(chan error, 1)
	stop := handle(t, b, speak, run, func(s transport.Stream) {
		close(running)
		_, err := s.Read(make([]byte, 1)) // until Close ends it
		time.Sleep(50 * time.Millisecond) // a handler that tidies up
		ended <- err
		s.Reset()
	})
	s := open(t, a, b, speak, run)
	receive(t, "the handler runs", running)
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := b.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			select {
			case err := <-ended:
				if err == nil || err == io.EOF {
					t.Errorf("the handler's read at Close: %v", err)
				}
				ended <- err
			default:
				t.Error("Close returned before the handler")
			}
		})
	}
	closing.Wait()
	stop()
	if _, err := s.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a read from a closed transport: %v", err)
	}
	if b.Connections() != 0 {
		t.Errorf("%d connections after Close", b.Connections())
	}
	_, err := b.Connect(t.Context(), "127.0.0.1:1")
	_, err2 := b.Open(t.Context(), a.Self(), speak, run)
	_, err3 := b.Handle(speak, run, echo)
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, transport.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}

// TestCloseCutsConnect closes while a dial hangs in a handshake that never
// answers.
func TestCloseCutsConnect(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a := start(t, Config{Listen: []string{}, handshakeTimeout: time.Hour})
	failed := make(chan error, 1)
	go func() {
		_, err := a.Connect(t.Context(), silent.Addr().String())
		failed <- err
	}()
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a.Close()
	if err := receive(t, "Connect ends", failed); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("a Connect cut by Close: %v, want ErrClosed", err)
	}
}

// TestGarbageClient lets clients that speak no libp2p knock, and checks that the
// port serves as before.
func TestGarbageClient(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	for _, greeting := range []string{"", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("\xff", 1<<16), "\x13/multistream/1.0.0\n\x05/tls\n"} {
		conn, err := net.Dial("tcp", hostPort(t, b))
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(greeting))
		defer conn.Close()
	}
	if got := ask(t, open(t, a, b, speak, run), "hello"); got != "hello" {
		t.Errorf("echo is %q", got)
	}
	if got := b.Connections(); got != 1 {
		t.Errorf("%d connections, want one", got)
	}
}

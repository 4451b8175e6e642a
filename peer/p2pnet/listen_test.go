package p2pnet

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestRouting(t *testing.T) {
	a, b := pair(t)
	for _, protocol := range []transport.Protocol{transport.ProtocolHello, transport.ProtocolExchange} {
		for _, run := range []string{"", "one", "two", strings.Repeat("r", transport.MaxRunName)} {
			name := fmt.Sprintf("%s of %q", protocol, run)
			handle(t, b, protocol, run, func(s transport.Stream) {
				defer s.Close()
				io.WriteString(s, name)
			})
		}
	}
	for at := range b.routes {
		want := fmt.Sprintf("%s of %q", at.protocol, at.run)
		got, err := io.ReadAll(open(t, a, b, at.protocol, at.run))
		if err != nil || string(got) != want {
			t.Errorf("%s was routed to %q, error %v", want, got, err)
		}
	}
}

func TestHandleTwice(t *testing.T) {
	_, b := pair(t)
	stop := handle(t, b, speak, run, echo)
	if _, err := b.Handle(speak, run, echo); err == nil {
		t.Error("a second handler was taken")
	}
	stop()
	stop()
	handle(t, b, speak, run, echo)
}

func TestBadNames(t *testing.T) {
	a, b := pair(t)
	long := strings.Repeat("x", transport.MaxRunName+1)
	if _, err := b.Handle(speak, long, echo); !errors.Is(err, ErrRunName) {
		t.Errorf("Handle with a long run name: %v", err)
	}
	if _, err := a.Open(t.Context(), b.Self(), speak, long); !errors.Is(err, ErrRunName) {
		t.Errorf("Open with a long run name: %v", err)
	}
	for _, bad := range []transport.Protocol{"", "/", "na", "/a\nb", transport.Protocol("/" + strings.Repeat("x", maxProtocol))} {
		if _, err := b.Handle(bad, run, echo); err == nil {
			t.Errorf("Handle took the protocol %q", bad)
		}
	}
}

// TestUnknownRun shows both ends of a refusal: the opener's error, at the first
// Read and at a later Write, and one line in the acceptor's log.
func TestUnknownRun(t *testing.T) {
	log, logs := logged()
	a := start(t, Config{Listen: []string{}})
	b := start(t, Config{Listen: []string{"127.0.0.1:0"}, Log: log})
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, "letters", echo)
	for range 3 {
		s := open(t, a, b, speak, run)
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, transport.ErrUnknownRun) {
			t.Errorf("the first read: %v, want ErrUnknownRun", err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, transport.ErrUnknownRun) {
			t.Errorf("a write after that: %v, want ErrUnknownRun", err)
		}
	}
	if got := b.Refused()["unknown run"]; got != 3 {
		t.Errorf("%d refusals counted, want 3", got)
	}
	lines := logs.FilterMessageSnippet("takes no part").All()
	if len(lines) != 3 {
		t.Fatalf("%d lines logged for three streams, want 3", len(lines))
	}
	if fields := lines[0].ContextMap(); fields["peer"] != string(a.Self()) || fields["run"] != run {
		t.Errorf("the line names %v", fields)
	}
}

// TestUnknownProtocol also takes a protocol that was spoken once: the opener may
// still believe it.
func TestUnknownProtocol(t *testing.T) {
	a, b := pair(t)
	stop := handle(t, b, speak, run, echo)
	if got := ask(t, open(t, a, b, speak, run), "x"); got != "x" {
		t.Fatalf("echo is %q", got)
	}
	stop()
	for _, protocol := range []transport.Protocol{speak, "/murmuration/exchange/2"} {
		s := open(t, a, b, protocol, run)
		for range 2 {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, transport.ErrUnknownProtocol) {
				t.Errorf("reading %s: %v, want ErrUnknownProtocol", protocol, err)
			}
		}
		eventually(t, "writes fail", func() bool {
			_, err := s.Write([]byte("x"))
			return err != nil
		})
	}
}

func TestStopWaits(t *testing.T) {
	a, b := pair(t)
	var ended atomic.Bool
	release := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo) // before Close, which waits for the handler too
	stop := handle(t, b, speak, run, func(s transport.Stream) {
		defer s.Close()
		io.WriteString(s, "x")
		<-release
		ended.Store(true)
	})
	s := open(t, a, b, speak, run)
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	eventually(t, "new streams are refused while the old one is served", func() bool {
		_, err := open(t, a, b, speak, run).Read(make([]byte, 1))
		return errors.Is(err, transport.ErrUnknownProtocol)
	})
	select {
	case <-stopped:
		t.Fatal("stop returned with a handler running")
	default:
	}
	letGo()
	receive(t, "stop returns", stopped)
	if !ended.Load() {
		t.Error("stop returned before the handler")
	}
}

func TestTooManyStreams(t *testing.T) {
	log, logs := logged()
	a := start(t, Config{Listen: []string{}})
	b := start(t, Config{Listen: []string{"127.0.0.1:0"}, Log: log})
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, run, func(s transport.Stream) { io.WriteString(s, "x"); io.ReadAll(s); s.Close() })
	handle(t, b, transport.ProtocolState, run, echo)
	greeted := func(s transport.Stream) error {
		_, err := io.ReadFull(s, make([]byte, 1))
		return err
	}
	streams := make([]transport.Stream, DefaultStreams)
	for i := range streams {
		streams[i] = open(t, a, b, speak, run)
		if err := greeted(streams[i]); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	for range 3 {
		if err := greeted(open(t, a, b, speak, run)); !errors.Is(err, ErrTooManyStreams) {
			t.Errorf("one stream too many: %v, want ErrTooManyStreams", err)
		}
	}
	if got := b.Refused()["too many streams"]; got != 3 {
		t.Errorf("%d refusals counted, want 3", got)
	}
	if n := logs.FilterMessageSnippet("too many open").Len(); n != 3 {
		t.Errorf("%d lines logged, want 3", n)
	}
	if got := ask(t, open(t, a, b, transport.ProtocolState, run), "y"); got != "y" {
		t.Errorf("another protocol is affected: %q", got)
	}
	streams[0].Close()
	eventually(t, "a stream is taken again once one has ended", func() bool { return greeted(open(t, a, b, speak, run)) == nil })
}

// TestBadPreamble speaks libp2p by hand: a run name that is too long, and one
// that never comes.
func TestBadPreamble(t *testing.T) {
	t.Parallel()
	a := start(t, Config{Listen: []string{}})
	b := start(t, Config{Listen: []string{"127.0.0.1:0"}, handshakeTimeout: 300 * time.Millisecond})
	handle(t, b, speak, run, func(s transport.Stream) { t.Error("a handler ran"); s.Close() })
	if _, err := a.Connect(t.Context(), b.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	for name, preamble := range map[string]string{"too long": "\xff", "nothing": "", "a part": "\x06dig"} {
		raw, err := a.host.NewStream(t.Context(), b.id, protocol.ID(speak))
		if err != nil {
			t.Fatal(err)
		}
		raw.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(raw, preamble); err != nil {
			t.Fatal(err)
		}
		_, err = raw.Read(make([]byte, 1))
		reset, ok := errors.AsType[*network.StreamError](err)
		if !ok || !reset.Remote || reset.ErrorCode != codeBadPreamble {
			t.Errorf("%s: %v, want a reset with codeBadPreamble", name, err)
		}
		raw.Reset()
	}
	if got := b.Refused()["bad preamble"]; got != 3 {
		t.Errorf("%d bad preambles counted, want 3", got)
	}
}

// TestLibp2pOpener checks that our acceptor serves libp2p's own opener, whose
// side of the negotiation negotiate.go replaces.
func TestLibp2pOpener(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	if _, err := a.Connect(t.Context(), b.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	raw, err := a.host.NewStream(t.Context(), b.id, protocol.ID(speak))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Reset()
	raw.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(raw, "\x06digitshello"); err != nil {
		t.Fatal(err)
	}
	raw.CloseWrite()
	if got, err := io.ReadAll(raw); err != nil || string(got) != "hello" {
		t.Errorf("echo is %q, error %v", got, err)
	}
}

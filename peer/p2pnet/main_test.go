package p2pnet

import (
	"context"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// waiting is how many tests that call t.Parallel run at once, unless -parallel says
// otherwise: they wait for libp2p's own times more than they work. Those that measure, or
// that need a port where nobody listens, call it not.
const waiting = "8"

func TestMain(m *testing.M) {
	beFarEnd()
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen. Nothing waits this
// long unless it fails.
const patience = time.Minute

const (
	speak = transport.ProtocolExchange
	run   = "digits"
)

// loopback is a configuration that listens on 127.0.0.1 only.
func loopback() Config { return Config{Listen: []string{"127.0.0.1:0"}} }

// start runs a transport until the end of the test.
func start(t testing.TB, config Config) *Transport {
	t.Helper()
	tr, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return tr
}

// pair runs two transports, of which the first knows where the second is.
func pair(t testing.TB) (*Transport, *Transport) {
	t.Helper()
	a, b := start(t, Config{Listen: []string{}}), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	return a, b
}

// logged returns a configuration's logger and what it takes.
func logged() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return zap.New(core), logs
}

func handle(t testing.TB, at *Transport, protocol transport.Protocol, run string, handler transport.Handler) (stop func()) {
	t.Helper()
	stop, err := at.Handle(protocol, run, handler)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

func open(t testing.TB, from, to *Transport, protocol transport.Protocol, run string) transport.Stream {
	t.Helper()
	s, err := from.Open(t.Context(), to.Self(), protocol, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Reset)
	return s
}

// echo sends back what it gets until the other end has nothing more to say.
func echo(s transport.Stream) {
	defer s.Close()
	if _, err := io.Copy(s, s); err != nil {
		s.Reset()
	}
}

// ask writes a message, ends the writing, and returns all of the answer.
func ask(t testing.TB, s transport.Stream, message string) string {
	t.Helper()
	if _, err := io.WriteString(s, message); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// eventually waits until something is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// receive takes one value from a channel.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}

// identifications tells of each of up to n connections of a transport that libp2p's
// identify has come to an end, so that its protocols are known.
func identifications(t testing.TB, at *Transport, n int) <-chan any {
	t.Helper()
	ended := []any{new(event.EvtPeerIdentificationCompleted), new(event.EvtPeerIdentificationFailed)}
	bus, err := at.host.EventBus().Subscribe(ended, eventbus.BufSize(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bus.Close() })
	return bus.Out()
}

// hostPort is the first address of a transport as host:port.
func hostPort(t testing.TB, at *Transport) string {
	t.Helper()
	a, err := parseAddress(at.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	return a.key()
}

// port is the port of a transport's first address, with its colon.
func port(t testing.TB, at *Transport) string {
	t.Helper()
	text := hostPort(t, at)
	return text[strings.LastIndex(text, ":"):]
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

package p2pnet

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestEcho(t *testing.T) {
	a, b := pair(t)
	from := make(chan transport.PeerID, 1)
	handle(t, b, speak, run, func(s transport.Stream) { from <- s.Remote(); echo(s) })
	s := open(t, a, b, speak, run)
	if got := ask(t, s, "hello"); got != "hello" {
		t.Errorf("echo of hello is %q", got)
	}
	if s.Remote() != b.Self() {
		t.Errorf("the opener's stream is to %s, want %s", s.Remote(), b.Self())
	}
	if got := receive(t, "the handler runs", from); got != a.Self() {
		t.Errorf("the handler's stream is from %s, want %s", got, a.Self())
	}
	if a.Connections() != 1 || b.Connections() != 1 {
		t.Errorf("connections: %d and %d, want one each", a.Connections(), b.Connections())
	}
}

func TestHalfClose(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, func(s transport.Stream) {
		defer s.Close()
		question, _ := io.ReadAll(s) // ends because the other end has closed its writing
		s.Write(append([]byte("you said "), question...))
	})
	s := open(t, a, b, speak, run)
	if got := ask(t, s, "so"); got != "you said so" {
		t.Errorf("the answer after CloseWrite is %q", got)
	}
	if _, err := s.Write([]byte("more")); err == nil {
		t.Error("a write after CloseWrite succeeded")
	}
}

// TestCloseDoesNotWait opens and closes without reading: libp2p's own opener
// would wait here for the acceptor's answer.
func TestCloseDoesNotWait(t *testing.T) {
	a, b := pair(t)
	heard := make(chan string, 1)
	handle(t, b, speak, run, func(s transport.Stream) {
		defer s.Close()
		all, _ := io.ReadAll(s)
		heard <- string(all)
	})
	s := open(t, a, b, speak, run)
	if _, err := io.WriteString(s, "news"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "what was written before Close", heard); got != "news" {
		t.Errorf("the handler read %q", got)
	}
}

func TestDeadlines(t *testing.T) {
	a, b := pair(t)
	release := make(chan struct{})
	handle(t, b, speak, run, func(s transport.Stream) { <-release; echo(s) })
	s := open(t, a, b, speak, run)

	wantTimeout := func(doing string, err error) {
		t.Helper()
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("%s: %v, want a net.Error that is a timeout", doing, err)
		}
	}
	s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := s.Read(make([]byte, 1))
	wantTimeout("reading until the deadline", err)
	_, err = s.Read(make([]byte, 1))
	wantTimeout("reading past the deadline", err)

	if _, err := s.Write([]byte("echoed later")); err != nil {
		t.Fatal(err)
	}
	s.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for err = nil; err == nil; { // until the window is full
		_, err = s.Write(make([]byte, 1<<16))
	}
	wantTimeout("writing until the deadline", err)
	_, err = s.Write(make([]byte, 1))
	wantTimeout("writing past the deadline", err)

	s.SetReadDeadline(time.Now().Add(patience))
	s.SetWriteDeadline(time.Now().Add(patience))
	close(release)
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, s); err != nil || n == 0 {
		t.Errorf("after later deadlines %d bytes came back, error %v", n, err)
	}
}

// TestDeadlineBeforeAnswer times out before the acceptor has agreed on the
// protocol; the stream must still be good.
func TestDeadlineBeforeAnswer(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	s := open(t, a, b, speak, run)
	s.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := s.Read(make([]byte, 1)); !isTimeout(err) {
		t.Fatalf("reading past the deadline: %v", err)
	}
	s.SetReadDeadline(time.Time{})
	if got := ask(t, s, "still here"); got != "still here" {
		t.Errorf("echo is %q", got)
	}
}

// TestDeadlineBeforeBufferedData reads past the deadline what is there already:
// it must stay there.
func TestDeadlineBeforeBufferedData(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	s := open(t, a, b, speak, run)
	if _, err := io.WriteString(s, "xy"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if _, err := io.ReadFull(s, got); err != nil || got[0] != 'x' {
		t.Fatalf("read %q, %v", got, err)
	}
	s.SetReadDeadline(time.Now().Add(-time.Second))
	if n, err := s.Read(got); n != 0 || !isTimeout(err) {
		t.Errorf("reading past the deadline: %d bytes, %v", n, err)
	}
	s.SetReadDeadline(time.Time{})
	if _, err := io.ReadFull(s, got); err != nil || got[0] != 'y' {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestDefaultDeadline shows that neither side can be held by an idle peer when
// no deadline was set, and that SetReadDeadline with the zero time goes back to
// the default.
func TestDefaultDeadline(t *testing.T) {
	const limit = 50 * time.Millisecond
	a := start(t, Config{Listen: []string{}, ioTimeout: limit})
	b := start(t, Config{Listen: []string{"127.0.0.1:0"}, ioTimeout: limit})
	a.Learn(b.Self(), b.Addresses())
	inbound, done := make(chan error, 1), make(chan struct{})
	handle(t, b, speak, run, func(s transport.Stream) {
		_, err := s.Read(make([]byte, 1))
		inbound <- err
		<-done
		s.Close()
	})
	defer close(done)
	s := open(t, a, b, speak, run)
	if err := receive(t, "the handler's read ends", inbound); !isTimeout(err) {
		t.Errorf("the handler's read: %v", err)
	}
	s.SetReadDeadline(time.Now().Add(time.Hour))
	s.SetReadDeadline(time.Time{})
	if _, err := s.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the opener's read: %v", err)
	}
}

func TestResetUnblocks(t *testing.T) {
	a, b := pair(t)
	inbound := make(chan error, 1)
	handle(t, b, speak, run, func(s transport.Stream) {
		s.Write([]byte("x"))
		_, err := s.Read(make([]byte, 1))
		inbound <- err
		s.Reset()
	})
	s := open(t, a, b, speak, run)
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	reading := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		reading <- err
	}()
	for range 3 {
		go s.Reset()
	}
	for side, from := range map[string]<-chan error{"local": reading, "remote": inbound} {
		if err := receive(t, side+" read ends", from); err == nil || err == io.EOF || isTimeout(err) {
			t.Errorf("%s read after Reset: %v", side, err)
		}
	}
	s.Reset()
	if _, err := s.Write([]byte("x")); err == nil {
		t.Error("a write after Reset succeeded")
	}
}

// TestBulk sends 25 MB each way at once through one stream.
func TestBulk(t *testing.T) {
	const size = 25_000_000
	a, b := pair(t)
	data := make([]byte, size)
	rand.NewChaCha8(sha256.Sum256([]byte("bulk"))).Read(data)
	swap := func(s transport.Stream) error {
		writing := make(chan error, 1)
		go func() {
			_, err := s.Write(data)
			writing <- err
		}()
		got := make([]byte, size)
		_, err := io.ReadFull(s, got)
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("the bytes differ")
		}
		return errors.Join(err, <-writing)
	}
	inbound := make(chan error, 1)
	handle(t, b, speak, run, func(s transport.Stream) { inbound <- swap(s); s.Close() })
	if err := swap(open(t, a, b, speak, run)); err != nil {
		t.Error(err)
	}
	if err := receive(t, "the other side is done", inbound); err != nil {
		t.Error(err)
	}
}

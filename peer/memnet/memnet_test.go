package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testProtocol transport.Protocol = "/test/1"

const testRun = "run"

// everywhere runs a test in real time and again in virtual time.
func everywhere(t *testing.T, test func(t *testing.T)) {
	t.Run("real", test)
	t.Run("virtual", func(t *testing.T) { synctest.Test(t, test) })
}

// newPeers puts named peers on a network and closes them after the test.
func newPeers(t *testing.T, n *Network, names ...string) []*Transport {
	t.Helper()
	var peers []*Transport
	for _, name := range names {
		p, err := n.Transport(name)
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, p)
		t.Cleanup(func() { p.Close() })
	}
	return peers
}

// connect opens a stream from one peer to another and returns both ends. They
// are reset after the test.
func connect(t *testing.T, from, to *Transport) (near, far transport.Stream) {
	t.Helper()
	ends := make(chan transport.Stream, 1)
	stop, err := to.Handle(testProtocol, testRun, func(s transport.Stream) { ends <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	near, err = from.Open(t.Context(), to.Self(), testProtocol, testRun)
	if err != nil {
		t.Fatal(err)
	}
	far = <-ends
	t.Cleanup(func() {
		near.Reset()
		far.Reset()
	})
	return near, far
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func mustRead(t *testing.T, s transport.Stream, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

func mustWrite(t *testing.T, s transport.Stream, text string) {
	t.Helper()
	if n, err := io.WriteString(s, text); n != len(text) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
	}
}

// TestStream goes through what transport.Stream promises.
func TestStream(t *testing.T) {
	cases := map[string]func(t *testing.T, near, far transport.Stream){
		"half close: the other end reads EOF and may still answer": func(t *testing.T, near, far transport.Stream) {
			mustWrite(t, near, "question")
			if err := near.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			mustRead(t, far, "question")
			if n, err := far.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Fatalf("read %d, %v after the end, want EOF", n, err)
			}
			mustWrite(t, far, "answer")
			mustRead(t, near, "answer")
			if _, err := near.Write([]byte{1}); err == nil {
				t.Fatal("wrote after CloseWrite")
			}
			if err := near.CloseWrite(); err != nil {
				t.Fatalf("second CloseWrite: %v", err)
			}
		},
		"close: what was written is read, what comes back is discarded": func(t *testing.T, near, far transport.Stream) {
			mustWrite(t, near, "last words")
			near.Close()
			mustRead(t, far, "last words")
			if _, err := far.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("read: %v, want EOF", err)
			}
			mustWrite(t, far, string(make([]byte, 2*DefaultWindow)))
			if _, err := near.Read(make([]byte, 1)); err == nil || err == io.EOF {
				t.Fatalf("read of a closed stream: %v", err)
			}
			near.Close()
		},
		"reset: both ends fail, whatever is queued": func(t *testing.T, near, far transport.Stream) {
			mustWrite(t, near, "never read")
			near.Reset()
			near.Reset()
			for _, s := range []transport.Stream{near, far} {
				if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
					t.Errorf("read: %v, want a reset", err)
				}
				if _, err := s.Write(make([]byte, 1)); !errors.Is(err, ErrReset) {
					t.Errorf("write: %v, want a reset", err)
				}
			}
		},
		"reset wakes a reader and a writer": func(t *testing.T, near, far transport.Stream) {
			faults := make(chan error, 2)
			go func() {
				_, err := far.Read(make([]byte, 1))
				faults <- err
			}()
			go func() {
				_, err := far.Write(make([]byte, 2*DefaultWindow))
				faults <- err
			}()
			time.Sleep(time.Millisecond)
			near.Reset()
			for range 2 {
				if err := <-faults; !errors.Is(err, ErrReset) {
					t.Errorf("got %v, want a reset", err)
				}
			}
		},
		"read deadline: times out, then the stream works on": func(t *testing.T, near, far transport.Stream) {
			near.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			if _, err := near.Read(make([]byte, 1)); !isTimeout(err) {
				t.Fatalf("read: %v, want a timeout", err)
			}
			mustWrite(t, far, "late")
			if _, err := near.Read(make([]byte, 1)); !isTimeout(err) {
				t.Fatalf("read past the deadline: %v, want a timeout", err)
			}
			near.SetReadDeadline(time.Time{})
			mustRead(t, near, "late")
		},
		"a deadline set meanwhile wakes the reader": func(t *testing.T, near, far transport.Stream) {
			fault := make(chan error, 1)
			go func() {
				_, err := near.Read(make([]byte, 1))
				fault <- err
			}()
			time.Sleep(time.Millisecond)
			near.SetReadDeadline(time.Now())
			if err := <-fault; !isTimeout(err) {
				t.Fatalf("read: %v, want a timeout", err)
			}
		},
		"the window blocks the writer until the reader reads": func(t *testing.T, near, far transport.Stream) {
			near.SetWriteDeadline(time.Now().Add(5 * time.Millisecond))
			n, err := near.Write(make([]byte, DefaultWindow+100))
			if n != DefaultWindow || !isTimeout(err) {
				t.Fatalf("wrote %d, %v, want %d and a timeout", n, err, DefaultWindow)
			}
			near.SetWriteDeadline(time.Time{})
			done := make(chan error, 1)
			go func() {
				_, err := near.Write(make([]byte, 100))
				done <- err
			}()
			if _, err := io.ReadFull(far, make([]byte, DefaultWindow+100)); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		},
		"an empty read or write returns": func(t *testing.T, near, far transport.Stream) {
			if n, err := near.Write(nil); n != 0 || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
			if n, err := near.Read(nil); n != 0 || err != nil {
				t.Fatalf("read: %d, %v", n, err)
			}
		},
	}
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T) {
				peers := newPeers(t, New(Config{}), "a", "b")
				near, far := connect(t, peers[0], peers[1])
				check(t, near, far)
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b")
	a, b := peers[0], peers[1]
	stop, err := b.Handle(testProtocol, testRun, func(s transport.Stream) { s.Close() })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Handle(testProtocol, testRun, func(transport.Stream) {}); err == nil {
		t.Error("a second handler was taken")
	}
	if _, err := a.Open(t.Context(), b.Self(), testProtocol, "other"); !errors.Is(err, transport.ErrUnknownRun) {
		t.Errorf("other run: %v", err)
	}
	if _, err := a.Open(t.Context(), b.Self(), "/test/2", testRun); !errors.Is(err, transport.ErrUnknownProtocol) {
		t.Errorf("other protocol: %v", err)
	}
	if _, err := a.Open(t.Context(), "mem77", testProtocol, testRun); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("unknown peer: %v", err)
	}
	if _, err := a.Open(t.Context(), a.Self(), testProtocol, testRun); err == nil {
		t.Error("a peer opened a stream to itself")
	}
	stop()
	stop()
	if _, err := a.Open(t.Context(), b.Self(), testProtocol, testRun); !errors.Is(err, transport.ErrUnknownRun) {
		t.Errorf("stopped handler: %v", err)
	}
	b.Close()
	if _, err := a.Open(t.Context(), b.Self(), testProtocol, testRun); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("closed peer: %v", err)
	}
	if _, err := b.Open(t.Context(), a.Self(), testProtocol, testRun); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("from a closed peer: %v", err)
	}
	if _, err := b.Handle(testProtocol, testRun, func(transport.Stream) {}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("handle on a closed peer: %v", err)
	}
}

func TestConnect(t *testing.T) {
	n := New(Config{})
	peers := newPeers(t, n, "a", "b")
	a, b := peers[0], peers[1]
	if id, err := a.Connect(t.Context(), b.Addresses()[0]); id != b.Self() || err != nil {
		t.Errorf("connect: %q, %v, want %q", id, err, b.Self())
	}
	if id, err := a.Connect(t.Context(), "mem:a"); id != a.Self() || err != nil {
		t.Errorf("own address: %q, %v", id, err)
	}
	if _, err := a.Connect(t.Context(), "mem:nobody"); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := a.Connect(t.Context(), "10.0.0.1:7000"); err == nil {
		t.Error("an address of another form was taken")
	}
	if _, err := n.Transport("a"); err == nil {
		t.Error("a name was given twice")
	}
	if _, err := n.Transport("a b"); err == nil {
		t.Error("a name with a space was taken")
	}
}

func TestIdentity(t *testing.T) {
	peers := newPeers(t, New(Config{Seed: 1}), "a", "b")
	a, b := peers[0], peers[1]
	signature, err := a.Sign([]byte("message"))
	if err != nil {
		t.Fatal(err)
	}
	if !b.Verify(a.Self(), []byte("message"), signature) {
		t.Error("the signature does not verify")
	}
	for name, wrong := range map[string]bool{
		"other message": b.Verify(a.Self(), []byte("massage"), signature),
		"other peer":    b.Verify(b.Self(), []byte("message"), signature),
		"no peer":       b.Verify("", []byte("message"), signature),
		"upper case":    b.Verify("mem"+transport.PeerID([]byte{'A'})+a.Self()[4:], []byte("message"), signature),
		"cut id":        b.Verify(a.Self()[:20], []byte("message"), signature),
	} {
		if wrong {
			t.Errorf("%s verifies", name)
		}
	}
	same := newPeers(t, New(Config{Seed: 1}), "a")[0]
	other := newPeers(t, New(Config{Seed: 2}), "a")[0]
	if same.Self() != a.Self() || other.Self() == a.Self() {
		t.Error("the identity does not follow from seed and name alone")
	}
}

func TestStopAndCloseWaitForHandlers(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		peers := newPeers(t, New(Config{}), "a", "b")
		a, b := peers[0], peers[1]
		release, running := make(chan struct{}), make(chan struct{})
		ended := false
		stop, err := b.Handle(testProtocol, testRun, func(s transport.Stream) {
			defer s.Close()
			close(running)
			<-release
			ended = true
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.Open(t.Context(), b.Self(), testProtocol, testRun)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		<-running
		if a.Connections() != 1 || b.Connections() != 1 {
			t.Errorf("connections %d and %d, want 1 and 1", a.Connections(), b.Connections())
		}
		time.AfterFunc(5*time.Millisecond, func() { close(release) })
		stop()
		if !ended {
			t.Error("stop did not wait for the handler")
		}

		ended = false
		_, err = b.Handle(testProtocol, testRun, func(s transport.Stream) {
			defer s.Close()
			s.Read(make([]byte, 1))
			ended = true
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err = a.Open(t.Context(), b.Self(), testProtocol, testRun)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b.Close()
		b.Close()
		if !ended {
			t.Error("close did not wait for the handler")
		}
		if b.Connections() != 0 {
			t.Errorf("%d connections after close", b.Connections())
		}
	})
}

func TestOpenAcrossACutLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Config{})
		peers := newPeers(t, n, "a", "b")
		a, b := peers[0], peers[1]
		if _, err := b.Handle(testProtocol, testRun, func(s transport.Stream) { s.Close() }); err != nil {
			t.Fatal(err)
		}
		n.Cut(a.Self(), b.Self())
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Open(ctx, b.Self(), testProtocol, testRun)
		if !errors.Is(err, transport.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want unreachable and deadline exceeded", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("gave up after %v, want 1s", took)
		}
		if _, err := a.Connect(t.Context(), "mem:b"); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("connect: %v", err)
		}
		if took := time.Since(start); took != time.Second+OpenTimeout {
			t.Errorf("an open without deadline gave up after %v", took-time.Second)
		}
		time.AfterFunc(2*time.Second, func() { n.Heal(a.Self(), b.Self()) })
		start = time.Now()
		s, err := a.Open(t.Context(), b.Self(), testProtocol, testRun)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("opened after %v, want 2s", took)
		}
	})
}

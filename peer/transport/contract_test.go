package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	run      = "digits"
	protocol = transport.Protocol("/test/1")
)

// adapters make two transports each that can reach each other. What a peer relies on holds of all of them alike.
var adapters = map[string]func(t *testing.T) [2]transport.Transport{
	"memnet": func(t *testing.T) (both [2]transport.Transport) {
		n := memnet.New(memnet.Config{})
		for i, name := range []string{"a", "b"} {
			tr, err := n.Transport(name)
			both[i] = kept(t, tr, err)
		}
		return both
	},
	"p2pnet": func(t *testing.T) (both [2]transport.Transport) {
		for i := range both {
			tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
			both[i] = kept(t, tr, err)
		}
		return both
	},
}

// kept closes a transport after the test, twice, which is once.
func kept(t *testing.T, tr transport.Transport, err error) transport.Transport {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tr.Close(), tr.Close()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return tr
}

// alike runs a test over each adapter; here has a connection to there.
func alike(t *testing.T, test func(t *testing.T, here, there transport.Transport)) {
	for name, two := range adapters {
		t.Run(name, func(t *testing.T) {
			both := two(t)
			id, err := both[0].Connect(t.Context(), both[1].JoinAddresses()[0])
			if err != nil || id != both[1].Self() {
				t.Fatalf("connected with %s, %v", id, err)
			}
			test(t, both[0], both[1])
		})
	}
}

// TestIdentities: an id is one that goes into files, and what its owner signs nobody else has signed.
func TestIdentities(t *testing.T) {
	alike(t, func(t *testing.T, here, there transport.Transport) {
		message := []byte("message")
		signature, err := there.Sign(message)
		if err != nil || !here.Verify(there.Self(), message, signature) {
			t.Fatalf("its own signature is none: %v", err)
		}
		for what, verified := range map[string]bool{
			"another id":      here.Verify(here.Self(), message, signature),
			"no id":           here.Verify("", message, signature) || here.Verify("\n", message, signature),
			"another message": here.Verify(there.Self(), []byte("massage"), signature),
			"a cut signature": here.Verify(there.Self(), message, signature[1:]) || here.Verify(there.Self(), message, nil),
		} {
			if verified {
				t.Errorf("%s: verified", what)
			}
		}
		for _, address := range append(there.Addresses(), there.JoinAddresses()...) {
			if len(address) <= transport.MaxAddressSize && transport.CheckAddress(address) != nil {
				t.Errorf("it listens at %q, which is no address", address)
			}
		}
		if err := transport.CheckID(there.Self()); err != nil || here.Self() == there.Self() {
			t.Errorf("%v; the ids are %s and %s", err, here.Self(), there.Self())
		}
	})
}

// TestStreamsCarryBytes in both directions, at once over the first connection and over lanes, each end knowing the other;
// after one side has written its last the other may still answer.
func TestStreamsCarryBytes(t *testing.T) {
	alike(t, func(t *testing.T, here, there transport.Transport) {
		stop, err := there.Handle(protocol, run, func(s transport.Stream) {
			defer s.Close()
			heard, err := io.ReadAll(s)
			if err != nil || s.Remote() != here.Self() {
				t.Errorf("a stream of %s: %v", s.Remote(), err)
			}
			if _, err := s.Write(bytes.ToUpper(heard)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if _, err := there.Handle(protocol, run, func(transport.Stream) {}); err == nil {
			t.Error("two handlers for one protocol of one run")
		}
		for lane := range transport.MaxLane + 1 {
			open := func() (transport.Stream, error) { return here.Open(t.Context(), there.Self(), protocol, run) }
			if lane > 0 {
				open = func() (transport.Stream, error) { return here.OpenLane(t.Context(), there.Self(), protocol, run, lane) }
			}
			s, err := open()
			if err != nil {
				t.Fatalf("lane %d: %v", lane, err)
			}
			if here.Connections() == 0 {
				t.Error("a stream without a connection")
			}
			_, written := s.Write([]byte("hello"))
			ended := s.CloseWrite()
			answer, read := io.ReadAll(s)
			if err := errors.Join(written, ended, read, s.Close()); err != nil || string(answer) != "HELLO" || s.Remote() != there.Self() {
				t.Errorf("lane %d: %q, %v", lane, answer, err)
			}
		}
		for _, lane := range []int{0, -1, transport.MaxLane + 1} {
			if _, err := here.OpenLane(t.Context(), there.Self(), protocol, run, lane); !errors.Is(err, transport.ErrLane) {
				t.Errorf("lane %d: %v", lane, err)
			}
		}
	})
}

// TestADeadlineLeavesTheStream: a read that is late is a net.Error that says so, and the next may succeed; a reset ends
// both ends.
func TestADeadlineLeavesTheStream(t *testing.T) {
	alike(t, func(t *testing.T, here, there transport.Transport) {
		ends := make(chan transport.Stream, 1)
		stop, err := there.Handle(protocol, run, func(s transport.Stream) { ends <- s })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		s, err := here.Open(t.Context(), there.Self(), protocol, run)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Reset()
		room := make([]byte, 1)
		_ = s.SetReadDeadline(time.Now().Add(-time.Second))
		var late net.Error
		if _, err := s.Read(room); !errors.As(err, &late) || !late.Timeout() {
			t.Errorf("a late read: %v", err)
		}
		_ = s.SetReadDeadline(time.Time{})
		_, err = s.Write(room)
		far := <-ends
		_, written := far.Write(room)
		if _, read := io.ReadFull(s, room); errors.Join(err, written, read) != nil {
			t.Errorf("after it: %v", errors.Join(err, written, read))
		}
		far.Reset()
		far.Reset()
		if _, err := s.Read(room); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a reset stream ends with %v", err)
		}
	})
}

// TestWhoCannotBeReached, and what is not taken, have an error each, by which a peer knows whether to ask again.
func TestWhoCannotBeReached(t *testing.T) {
	alike(t, func(t *testing.T, here, there transport.Transport) {
		opened := func(to transport.PeerID, protocol transport.Protocol, run string) error {
			s, err := here.Open(t.Context(), to, protocol, run)
			if err == nil {
				defer s.Reset()
				_, err = s.Read(make([]byte, 1)) // where it may surface
			}
			return err
		}
		stop, err := there.Handle(protocol, run, func(s transport.Stream) { s.Close() })
		if err != nil {
			t.Fatal(err)
		}
		if err := opened(there.Self(), protocol, "letters"); !errors.Is(err, transport.ErrUnknownRun) {
			t.Errorf("another run: %v", err)
		}
		if err := opened(there.Self(), "/test/2", run); !errors.Is(err, transport.ErrUnknownProtocol) && !errors.Is(err, transport.ErrUnknownRun) {
			t.Errorf("another version: %v", err)
		}
		if err := opened(here.Self(), protocol, run); err == nil {
			t.Error("a stream to itself")
		}
		if stop(); opened(there.Self(), protocol, run) == nil {
			t.Error("nobody handles streams any more, and one is open")
		}
		if err := here.SendPacket(there.Self(), run, make([]byte, transport.MaxPacket+transport.MaxMark+1)); !errors.Is(err, transport.ErrNoPackets) {
			t.Errorf("a packet that is too large: %v", err)
		}
		topic, err := here.Topic("murmuration/1/news", nil, func(transport.PeerID, []byte) transport.Verdict { return transport.Forward })
		if err != nil {
			t.Fatal(err)
		}
		if err := topic.Publish(make([]byte, transport.MaxMessage+1)); !errors.Is(err, transport.ErrTooLarge) {
			t.Errorf("a message that is too large: %v", err)
		}
		if err := errors.Join(topic.Publish(make([]byte, transport.MaxMessage)), topic.Close(), topic.Close()); err != nil {
			t.Error(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := here.Open(ended, there.Self(), protocol, run); err == nil {
			t.Error("a stream after the time to open one")
		}
		if err := here.Close(); err != nil {
			t.Fatal(err)
		}
		if err := opened(there.Self(), protocol, run); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("once it is closed: %v", err)
		}
	})
}

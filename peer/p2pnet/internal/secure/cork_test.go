package secure

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/sec"
)

// socket records what is written to it.
type socket struct {
	net.Conn // nil in unit tests
	writes   [][]byte
	fault    error
}

func (s *socket) Write(p []byte) (int, error) {
	if s.fault != nil {
		return 0, s.fault
	}
	s.writes = append(s.writes, bytes.Clone(p))
	if s.Conn == nil {
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// maxMessage is the largest piece in which yamux writes.
const maxMessage = 256 << 10

// securePair is a TLS connection, with the socket under its first end.
func securePair(t *testing.T) (from, to sec.SecureConn, under *socket) {
	t.Helper()
	ends := [2]*TLS{secured(t, 0), secured(t, 1)}
	near, far := net.Pipe()
	under = &socket{Conn: near}
	accepted := make(chan sec.SecureConn, 1)
	go func() {
		conn, err := ends[1].SecureInbound(t.Context(), far, "")
		if err != nil {
			t.Errorf("accepting: %v", err)
		}
		accepted <- conn
	}()
	from, err := ends[0].SecureOutbound(t.Context(), under, idOf(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	to = <-accepted
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return from, to, under
}

// TestCork sends writes of all sizes through TLS: the bytes arrive, and a large
// write costs a fraction of the system calls that its records are.
func TestCork(t *testing.T) {
	from, to, under := securePair(t)
	random := rand.NewChaCha8(sha256.Sum256([]byte("cork")))
	const slice = 8*recordSize + 52 // 2^15 values in a frame in a message
	writes := map[int]int{slice: 2, maxMessage: maxMessage / recordSize / 4}
	for _, size := range []int{1, recordSize, recordSize + 1, slice, 1 << 20, corkSize, maxMessage} {
		data := make([]byte, size)
		random.Read(data)
		under.writes = nil
		sent := make(chan error, 1)
		go func() {
			n, err := from.Write(data)
			if err == nil && n != size {
				err = io.ErrShortWrite
			}
			sent <- err
		}()
		got := make([]byte, size)
		if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes did not arrive as they were: %v", size, err)
		}
		if err := <-sent; err != nil {
			t.Fatalf("writing %d bytes: %v", size, err)
		}
		if n, want := len(under.writes), writes[size]; want > 0 && n != want {
			t.Errorf("%d bytes took %d writes, want %d", size, n, want)
		}
	}
}

// TestCorkedKeepsOrder writes around the edges of the cork's room.
func TestCorkedKeepsOrder(t *testing.T) {
	under := &socket{}
	c := &corked{Conn: under}
	var want []byte
	put := func(size int) {
		p := bytes.Repeat([]byte{byte(len(want))}, size)
		want = append(want, p...)
		if n, err := c.Write(p); n != size || err != nil {
			t.Fatalf("wrote %d of %d bytes, %v", n, size, err)
		}
	}
	put(1)
	c.cork(make([]byte, 0, 10))
	for _, size := range []int{4, 6, 1, 10, 11, 3} {
		put(size)
	}
	if err := c.uncork(); err != nil {
		t.Fatal(err)
	}
	put(2)
	var sizes []int
	for _, w := range under.writes {
		sizes = append(sizes, len(w))
	}
	if !slices.Equal(sizes, []int{1, 10, 1, 10, 11, 3, 2}) || !bytes.Equal(slices.Concat(under.writes...), want) {
		t.Errorf("writes of %v bytes, or the bytes are out of order", sizes)
	}
}

// TestCorkTellsFailure: what is gathered looks written to TLS, so the write that
// caused it must tell, and nothing may follow what was lost.
func TestCorkTellsFailure(t *testing.T) {
	from, to, under := securePair(t)
	go io.Copy(io.Discard, to)
	fault := errors.New("the cable is out")
	under.fault = fault
	if _, err := from.Write(make([]byte, maxMessage)); !errors.Is(err, fault) {
		t.Errorf("a write to a dead socket: %v", err)
	}
	under.fault = nil
	if _, err := from.Write([]byte{1}); !errors.Is(err, fault) {
		t.Errorf("a write behind a lost one: %v", err)
	}
}

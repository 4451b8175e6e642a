package swim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// conn is a stream as memberlist wants it for a push/pull.
type conn struct {
	seam.Stream
	transport *transport
	// dialled tells which end opened the stream.
	dialled bool
	// greeted is false while what the other end remembers of us is still to be
	// read. Only the reader touches it.
	greeted bool
	done    chan struct{} // closed by Close
	once    sync.Once
}

var _ net.Conn = (*conn)(nil)

// newConn wraps a tracked stream.
func newConn(t *transport, s seam.Stream, dialled bool) *conn {
	return &conn{Stream: s, transport: t, dialled: dialled, greeted: !dialled, done: make(chan struct{})}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if !c.greeted {
		if err := c.readGreeting(); err != nil {
			c.transport.note(c.Remote(), err)
			return 0, err
		}
		c.greeted = true
	}
	n, err := c.Stream.Read(p)
	if err != nil && c.dialled && !errors.Is(err, io.EOF) {
		c.transport.note(c.Remote(), err)
	}
	return n, err
}

// readGreeting learns what the other end remembers of an earlier life of ours.
// What does not verify is ignored: it is signed by us or worth nothing.
func (c *conn) readGreeting() error {
	var header [2]byte
	if _, err := io.ReadFull(c.Stream, header[:]); err != nil {
		return fmt.Errorf("read what the other end remembers: %w", err)
	}
	size := int(binary.BigEndian.Uint16(header[:]))
	if size > memberlist.MetaMaxSize {
		return fmt.Errorf("what the other end remembers of us has %d bytes: %w", size, errOversize)
	}
	meta := make([]byte, size)
	if _, err := io.ReadFull(c.Stream, meta); err != nil {
		return fmt.Errorf("read what the other end remembers: %w", err)
	}
	if size > 0 {
		_ = c.transport.book.recall(meta)
	}
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.Stream.Close()
		c.transport.untrack(c.Stream)
		close(c.done)
	})
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return peerAddr(c.transport.seam.Self()) }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return peerAddr(c.Remote()) }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

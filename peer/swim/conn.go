package swim

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// conn adapts a stream to memberlist for a push/pull.
type conn struct {
	transport.Stream
	transport *inbound
	// dialled tells which end opened the stream.
	dialled bool
	// message is nil until the other end's message has been read, and held is the memory
	// that it takes. Only the reader uses them.
	message *bytes.Reader
	held    int
	done    chan struct{} // closed by Close
	once    sync.Once
}

var _ net.Conn = (*conn)(nil)

func newConn(t *inbound, s transport.Stream, dialled bool) *conn {
	return &conn{Stream: s, transport: t, dialled: dialled, done: make(chan struct{})}
}

// Read implements net.Conn. It gives memberlist what it may have of the one message that
// the other end sends.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.listen(); err != nil {
		c.transport.note(c.Remote(), err)
		return 0, err
	}
	return c.message.Read(p)
}

// listen reads the message, if it has not been read yet.
func (c *conn) listen() error {
	if c.message != nil {
		return nil
	}
	if c.dialled {
		if err := c.readGreeting(); err != nil {
			return err
		}
	}
	by := c.transport.speaker(c.Remote())
	by.heeded = by.heeded || c.dialled
	in := intake{from: c.Stream, gate: c.transport.gate, by: by, asked: c.dialled, hold: c.hold}
	message, err := in.read(c.transport.keys)
	if err != nil {
		return fmt.Errorf("what %s says of the members: %w", c.Remote().Short(), err)
	}
	c.message = bytes.NewReader(message)
	return nil
}

// hold reserves memory for the message, until Close.
func (c *conn) hold(bytes int) bool {
	if !c.transport.hold(bytes) {
		return false
	}
	c.held += bytes
	return true
}

// Write implements net.Conn; memberlist writes a message at once.
func (c *conn) Write(p []byte) (int, error) {
	if _, err := c.Stream.Write(c.transport.keys.sealMessage(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// readGreeting reads the metadata of an earlier life of this peer that the other end
// remembers. Metadata without a valid signature of this peer is ignored.
func (c *conn) readGreeting() error {
	meta, err := readSized(c.Stream, memberlist.MetaMaxSize)
	if err != nil {
		return fmt.Errorf("read what the other end remembers of us: %w", err)
	}
	if len(meta) > 0 {
		_ = c.transport.book.own.recall(meta)
	}
	return nil
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.Stream.Close()
		c.transport.untrack(c.Stream)
		c.transport.hold(-c.held)
		close(c.done)
	})
	return nil
}

func (c *conn) abandon() {
	c.Stream.Reset()
	c.Close()
}

func (c *conn) LocalAddr() net.Addr { return peerAddr(c.transport.over.Self()) }

func (c *conn) RemoteAddr() net.Addr { return peerAddr(c.Remote()) }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

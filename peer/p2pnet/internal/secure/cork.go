package secure

import (
	"net"
	"sync"
)

const (
	// recordSize is the most that TLS puts into one record, and recordExtra what
	// it adds to one: header, type and tag. It gives each record to the socket in a
	// system call of its own.
	recordSize  = 16 << 10
	recordExtra = 22
	// corkSize holds as many records as are gathered, since more bring nothing more,
	// and a short one: a slice of 2^n values is a little longer than whole records,
	// and its end should not cost a system call.
	corkSize = 4*(recordSize+recordExtra) + recordShort
	// recordShort is room for the headers of a frame and of yamux.
	recordShort = 512
)

// corked is the connection that TLS writes to. While it is corked it gathers the
// bytes. The reading side of TLS writes too, to answer alerts; so there is a
// lock, and bytes keep their order.
type corked struct {
	net.Conn
	mu       sync.Mutex
	gathered []byte // nil unless corked
	broken   error  // error of a write of gathered bytes, of which the rest is lost
}

func (c *corked) cork(into []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathered = into
}

func (c *corked) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	c.gathered = nil
	return err
}

func (c *corked) flush() error {
	if len(c.gathered) > 0 && c.broken == nil {
		_, c.broken = c.Conn.Write(c.gathered)
	}
	c.gathered = c.gathered[:0]
	return c.broken
}

func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return 0, c.broken
	}
	if c.gathered == nil {
		return c.Conn.Write(p)
	}
	if len(c.gathered)+len(p) > cap(c.gathered) {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > cap(c.gathered) {
		return c.Conn.Write(p)
	}
	c.gathered = append(c.gathered, p...)
	return len(p), nil
}

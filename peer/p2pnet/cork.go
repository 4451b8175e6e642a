package p2pnet

import (
	"context"
	"net"
	"sync"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
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

// security is libp2p's TLS with the records of one write gathered, so that several
// cost one system call. The processor is what bounds the rate of an encrypted
// stream: BenchmarkTuned shows what it costs per byte. Gathering reads in the same
// way was tried and gained nothing.
type security struct {
	*libp2ptls.Transport
	corks sync.Pool // of *[corkSize]byte, held during a large write only
}

var _ sec.SecureTransport = (*security)(nil)

// newSecurity has the form of the constructors that libp2p takes.
func newSecurity(id protocol.ID, key crypto.PrivKey, muxers []upgrader.StreamMuxer) (*security, error) {
	transport, err := libp2ptls.New(id, key, muxers)
	if err != nil {
		return nil, err
	}
	return &security{Transport: transport, corks: sync.Pool{New: func() any { return new([corkSize]byte) }}}, nil
}

func (s *security) SecureInbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	below := &corked{Conn: insecure}
	secure, err := s.Transport.SecureInbound(ctx, below, p)
	if err != nil {
		return nil, err
	}
	return &corking{secure, below, &s.corks}, nil
}

func (s *security) SecureOutbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	below := &corked{Conn: insecure}
	secure, err := s.Transport.SecureOutbound(ctx, below, p)
	if err != nil {
		return nil, err
	}
	return &corking{secure, below, &s.corks}, nil
}

// corking is what TLS is written to through: it corks what is below TLS for the
// length of a write.
type corking struct {
	sec.SecureConn
	below *corked
	corks *sync.Pool
}

func (c *corking) Write(p []byte) (int, error) {
	if len(p) <= recordSize {
		return c.SecureConn.Write(p)
	}
	cork := c.corks.Get().(*[corkSize]byte)
	defer c.corks.Put(cork)
	c.below.cork(cork[:0])
	n, err := c.SecureConn.Write(p)
	if pulled := c.below.pull(); err == nil && pulled != nil {
		return 0, pulled
	}
	return n, err
}

// corked is what TLS writes to. While it is corked it gathers what it is given.
// TLS writes from its reading side too, to answer alerts; so there is a lock, and
// what is written meanwhile keeps its order.
type corked struct {
	net.Conn
	mu       sync.Mutex
	gathered []byte // nil unless corked
	broken   error  // what a write of gathered bytes failed with: their rest is lost
}

func (c *corked) cork(into []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathered = into
}

// pull writes what was gathered.
func (c *corked) pull() error {
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

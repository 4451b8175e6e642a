package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ErrNotAPeer: what answers at an address is an HTTP server.
var ErrNotAPeer = errors.New("an HTTP server answers there, not a peer")

// greeting is how many bytes isHTTP looks at.
const greeting = 5

// isHTTP tells of the first bytes of an answer whether an HTTP server sent them. Some send a page alone, to who
// does not speak their language.
func isHTTP(first []byte) bool {
	switch strings.ToLower(string(first)) {
	case "http/", "<!doc", "<html":
		return true
	}
	return false
}

// labelling is libp2p's upgrader of connections, whose failures say what they have met.
type labelling struct{ transport.Upgrader }

// Upgrade implements transport.Upgrader.
func (l labelling) Upgrade(ctx context.Context, t transport.Transport, conn manet.Conn, d network.Direction, to peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	if d != network.DirOutbound {
		return l.Upgrader.Upgrade(ctx, t, conn, d, to, scope)
	}
	overheard := &overheard{Conn: conn}
	upgraded, err := l.Upgrader.Upgrade(ctx, t, overheard, d, to, scope)
	if err != nil && isHTTP(overheard.first) {
		err = fmt.Errorf("%w (%w)", ErrNotAPeer, err)
	}
	return upgraded, err
}

// overheard is a connection that keeps the first bytes which it has read.
type overheard struct {
	manet.Conn
	first []byte // up to greeting
}

// Read implements net.Conn. One goroutine reads.
func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if missing := greeting - len(o.first); missing > 0 {
		o.first = append(o.first, b[:min(n, missing)]...)
	}
	return n, err
}

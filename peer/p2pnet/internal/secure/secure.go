// Package secure is libp2p's TLS with two changes: no clock decides who may connect,
// and the records of one write go out together.
package secure

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// The dates of every certificate: from the date that a clock shows which was never set,
// to the date that stands for no end in RFC 5280. libp2p's own certificates begin an hour
// before the process started, so a peer whose clock is further behind could not connect.
var (
	certificateBegins = stated("1970-01-01T00:00:00Z")
	certificateEnds   = stated("9999-12-31T23:59:59Z")
)

// stated is a date that is written in the source, not read from a clock.
func stated(date string) (t time.Time) {
	if err := t.UnmarshalText([]byte(date)); err != nil {
		panic(err)
	}
	return t
}

// Errors of a handshake with an identity of one's own: the other end is this very process, or
// another one that has the key.
var (
	ErrSelf      = errors.New("connected with itself")
	ErrDuplicate = errors.New("another process has this one's key")
)

// TLS is libp2p's TLS with two differences. No clock decides who may connect: a
// certificate carries a signature by the peer's key, which is the proof, and its dates
// prove nothing. And the records of one write are gathered, so that several cost one
// system call. The processor is what bounds the rate of an encrypted stream:
// BenchmarkTuned shows what it costs per byte. Gathering reads in the same way was
// tried and gained nothing.
type TLS struct {
	identity  *libp2ptls.Identity
	local     peer.ID
	muxers    []string
	duplicate func()    // called when another process with this key has connected
	corks     sync.Pool // holds *[corkSize]byte; a connection has one only during a large write
}

var _ sec.SecureTransport = (*TLS)(nil)

// New makes the TLS of the peer with a key, which agrees on one of these muxers. It calls duplicate,
// if that is not nil, when another process has connected and proved that it has the key.
func New(key crypto.PrivKey, muxers []upgrader.StreamMuxer, duplicate func()) (*TLS, error) {
	local, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	identity, err := libp2ptls.NewIdentity(key, libp2ptls.WithCertTemplate(&x509.Certificate{
		SerialNumber: serial, NotBefore: certificateBegins, NotAfter: certificateEnds,
	}))
	if err != nil {
		return nil, err
	}
	s := &TLS{identity: identity, local: local, duplicate: duplicate, corks: sync.Pool{New: func() any { return new([corkSize]byte) }}}
	for _, one := range muxers {
		s.muxers = append(s.muxers, string(one.ID))
	}
	return s, nil
}

// ID implements sec.SecureTransport.
func (s *TLS) ID() protocol.ID { return libp2ptls.ID }

func (s *TLS) SecureInbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	c, err := s.secure(ctx, insecure, p, tls.Server)
	if errors.Is(err, ErrDuplicate) && s.duplicate != nil {
		s.duplicate()
	}
	return c, err
}

func (s *TLS) SecureOutbound(ctx context.Context, insecure net.Conn, p peer.ID) (sec.SecureConn, error) {
	return s.secure(ctx, insecure, p, tls.Client)
}

// secure does the handshake at one end of a connection, with peer p, or with any peer if p is empty.
func (s *TLS) secure(ctx context.Context, insecure net.Conn, p peer.ID, end func(net.Conn, *tls.Config) *tls.Conn) (sec.SecureConn, error) {
	var proved crypto.PubKey
	config, _ := s.identity.ConfigForPeer(p)
	// Which muxer follows is agreed on within the handshake, as every go-libp2p does.
	config.NextProtos = append(s.muxers[:len(s.muxers):len(s.muxers)], config.NextProtos...)
	config.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) (err error) {
		proved, err = provedKey(raw, p)
		return err
	}
	below := &corked{Conn: insecure}
	above := end(below, config)
	err := above.HandshakeContext(ctx)
	if err == nil && proved == nil {
		err = errors.New("the other end has shown no certificate")
	}
	if err != nil {
		return nil, errors.Join(err, insecure.Close())
	}
	remote, err := peer.IDFromPublicKey(proved)
	if err == nil && remote == s.local {
		err = s.mirrored(above.ConnectionState().PeerCertificates[0].Raw)
	}
	if err != nil {
		return nil, errors.Join(err, insecure.Close())
	}
	c := &corking{Conn: above, below: below, corks: &s.corks, local: s.local, remote: remote, key: proved}
	if agreed := above.ConnectionState().NegotiatedProtocol; agreed != plainALPN {
		c.state = network.ConnectionState{StreamMultiplexer: protocol.ID(agreed), UsedEarlyMuxerNegotiation: agreed != ""}
	}
	return c, nil
}

// mirrored tells whether another end with this peer's key is this process or another one. Each process makes
// a certificate of its own, and the handshake has proved that the other end has the certificate's key.
func (s *TLS) mirrored(shown []byte) error {
	config, _ := s.identity.ConfigForPeer("")
	if bytes.Equal(shown, config.Certificates[0].Certificate[0]) {
		return ErrSelf
	}
	return ErrDuplicate
}

// plainALPN is the ALPN name of an end that negotiates the muxer after TLS.
const plainALPN = "libp2p"

// provedKey is the public key that the certificate of the other end proves; if want is
// given, it must be that peer's. The certificate's dates come from another machine's
// clock, so they are replaced before libp2p checks the rest.
func provedKey(raw [][]byte, want peer.ID) (key crypto.PubKey, err error) {
	defer func() { // as libp2p does: what a stranger sends must not end the process
		if fault := recover(); fault != nil {
			err = fmt.Errorf("reading the certificate of the other end: %v", fault)
		}
	}()
	chain := make([]*x509.Certificate, len(raw))
	for i := range raw {
		if chain[i], err = x509.ParseCertificate(raw[i]); err != nil {
			return nil, err
		}
		chain[i].NotBefore, chain[i].NotAfter = certificateBegins, certificateEnds
	}
	if key, err = libp2ptls.PubKeyFromCertChain(chain); err != nil {
		return nil, err
	}
	if want == "" || want.MatchesPublicKey(key) {
		return key, nil
	}
	actual, err := peer.IDFromPublicKey(key)
	if err != nil {
		return nil, err
	}
	return nil, sec.ErrPeerIDMismatch{Expected: want, Actual: actual}
}

// corking is a TLS connection whose other end has proved its identity. During a
// write it corks the connection below TLS.
type corking struct {
	*tls.Conn
	below *corked
	corks *sync.Pool

	local, remote peer.ID
	key           crypto.PubKey
	state         network.ConnectionState
}

var _ sec.SecureConn = (*corking)(nil)

func (c *corking) LocalPeer() peer.ID                 { return c.local }
func (c *corking) RemotePeer() peer.ID                { return c.remote }
func (c *corking) RemotePublicKey() crypto.PubKey     { return c.key }
func (c *corking) ConnState() network.ConnectionState { return c.state }

func (c *corking) Write(p []byte) (int, error) {
	if len(p) <= recordSize {
		return c.Conn.Write(p)
	}
	cork := c.corks.Get().(*[corkSize]byte)
	defer c.corks.Put(cork)
	c.below.cork(cork[:0])
	n, err := c.Conn.Write(p)
	if uncorked := c.below.uncork(); err == nil && uncorked != nil {
		return 0, uncorked
	}
	return n, err
}

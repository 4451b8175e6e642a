package p2pnet

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Packets travel as UDP datagrams between the ports that carry the streams, which
// have the same numbers; no further address of a peer has to be announced. Each is
// signed by its sender, for its receiver; it is not encrypted.
//
//	"MUR" u8 version = 1 | sender's public key, 32 bytes | run length u8, run |
//	packet, up to 1056 bytes, a mark included | Ed25519 signature, 64 bytes

const (
	datagramMagic   = "MUR\x01"
	datagramLabel   = "packet to "
	maxDatagramSize = len(datagramMagic) + ed25519.PublicKeySize + 1 + transport.MaxRunName + maxMarkedPacket + ed25519.SignatureSize
	// maxMarkedPacket is the largest packet with the mark of its sender before it.
	maxMarkedPacket = transport.MaxPacket + transport.MaxMark
	// strangersPerSecond is how many datagrams a second are looked at whose sender
	// nobody has spoken of; each costs a check of a signature.
	strangersPerSecond = 128
	// maxPaths bounds the peers of which the way that their packets came is known.
	maxPaths = maxBookPeers
)

var errDatagram = errors.New("malformed datagram")

// datagrams holds the sockets, which the first use of packets opens.
type datagrams struct {
	*node
	reading sync.WaitGroup

	strangers *rate.Limiter
	paths     *lru.Cache[peer.ID, netip.AddrPort] // address that a peer's last packet came from

	mu      sync.RWMutex
	closed  bool
	sockets []*net.UDPConn

	handling sync.Mutex // held while a packet is handled
	handlers map[string]func(transport.PeerID, []byte)
}

func newDatagrams(n *node) *datagrams {
	paths, _ := lru.New[peer.ID, netip.AddrPort](maxPaths) // fails for sizes below one only
	return &datagrams{
		node: n, strangers: rate.NewLimiter(strangersPerSecond, strangersPerSecond), paths: paths,
		handlers: make(map[string]func(transport.PeerID, []byte)),
	}
}

// SendPacket implements transport.Packets. Until a packet has come from the peer, a packet
// goes to every address that was learned of it.
func (d *datagrams) SendPacket(to transport.PeerID, run string, packet []byte) error {
	if len(packet) > maxMarkedPacket || len(run) > transport.MaxRunName {
		return fmt.Errorf("p2pnet: a packet of %d bytes for run %q: %w", len(packet), run, transport.ErrNoPackets)
	}
	id, err := parsePeer(to)
	if err != nil {
		return fmt.Errorf("p2pnet: sending a packet: %w", err)
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	targets := d.targets(id)
	if len(d.sockets) == 0 || len(targets) == 0 {
		return fmt.Errorf("p2pnet: sending a packet to %s: %w: no socket or no address", to.Short(), transport.ErrNoPackets)
	}
	datagram := appendDatagram(nil, d.key, to, run, packet)
	sent := false
	for _, target := range targets {
		// A socket refuses what it cannot reach: another family, loopback or all but that.
		if slices.ContainsFunc(d.sockets, func(socket *net.UDPConn) bool {
			_, err := socket.WriteToUDPAddrPort(datagram, target)
			return err == nil
		}) {
			sent = true
		}
	}
	if !sent {
		return fmt.Errorf("p2pnet: sending a packet to %s: %w", to.Short(), transport.ErrNoPackets)
	}
	return nil
}

// targets are the addresses to which SendPacket sends.
func (d *datagrams) targets(id peer.ID) (targets []netip.AddrPort) {
	if known, ok := d.paths.Get(id); ok {
		return []netip.AddrPort{known}
	}
	for _, a := range d.lookup(id) {
		if ip, err := netip.ParseAddr(a.host); err == nil && a.relay == "" {
			targets = append(targets, netip.AddrPortFrom(ip, a.port))
		}
	}
	return targets
}

// HandlePackets implements transport.Packets.
func (d *datagrams) HandlePackets(run string, handler func(transport.PeerID, []byte)) (stop func(), err error) {
	if err := d.openSockets(); err != nil {
		return nil, fmt.Errorf("p2pnet: taking packets: %w", err)
	}
	d.handling.Lock()
	defer d.handling.Unlock()
	if d.handlers[run] != nil {
		return nil, fmt.Errorf("p2pnet: packets of run %q have a handler already", run)
	}
	d.handlers[run] = handler
	return sync.OnceFunc(func() {
		d.handling.Lock()
		defer d.handling.Unlock()
		delete(d.handlers, run)
	}), nil
}

// openSockets opens a socket beside each listener, unless there are some.
func (d *datagrams) openSockets() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return transport.ErrClosed
	case len(d.sockets) > 0:
		return nil
	}
	var faults []error
	for _, a := range d.host.Network().ListenAddresses() {
		where, err := manet.ToNetAddr(a)
		at, ok := where.(*net.TCPAddr)
		if err != nil || !ok {
			continue
		}
		network := "udp6"
		if at.IP.To4() != nil {
			network = "udp4"
		}
		socket, err := net.ListenUDP(network, &net.UDPAddr{IP: at.IP, Port: at.Port, Zone: at.Zone})
		if err != nil {
			faults = append(faults, err)
			continue
		}
		d.sockets = append(d.sockets, socket)
		d.reading.Go(func() { d.readPackets(socket) })
	}
	if len(d.sockets) == 0 {
		return errors.Join(append(faults, fmt.Errorf("%w: this process listens nowhere for them", transport.ErrNoPackets))...)
	}
	return nil
}

// readPackets hands over what arrives at a socket until the socket is closed. Each
// socket has one goroutine, so forged packets can cost at most one core; packets of
// senders without a known address are limited in rate before a signature is checked.
func (d *datagrams) readPackets(socket *net.UDPConn) {
	buffer := make([]byte, maxDatagramSize+1)
	for {
		n, from, err := socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for a packet sent earlier
		}
		if err := d.takeDatagram(buffer[:n], from); err != nil {
			d.refused.add("bad datagram")
			d.log.Debug("dropped a datagram", zap.Stringer("from", from), zap.Error(err))
		}
	}
}

// takeDatagram checks a datagram, the cheap checks first, and hands its packet to the handler.
func (d *datagrams) takeDatagram(datagram []byte, from netip.AddrPort) error {
	public, run, packet, err := splitDatagram(datagram)
	if err != nil {
		return err
	}
	id, err := idOfKey(public)
	if err != nil {
		return err
	}
	if err := d.admitted(id); err != nil {
		return err
	}
	if len(d.lookup(id)) == 0 && !d.strangers.AllowN(time.Now(), 1) {
		// A joiner of which no news has come yet is a stranger, and so is whoever forges.
		return fmt.Errorf("nothing is known of peer %s", id)
	}
	d.handling.Lock()
	defer d.handling.Unlock()
	take := d.handlers[run]
	if take == nil {
		return fmt.Errorf("run %q takes no packets here", run)
	}
	signed := len(datagram) - ed25519.SignatureSize
	if !ed25519.Verify(public, toBeSigned(datagram[:signed], d.self), datagram[signed:]) {
		return fmt.Errorf("%w: not signed by peer %s for this one", errDatagram, id)
	}
	d.paths.Add(id, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
	take(transport.PeerID(id.String()), packet)
	return nil
}

func (d *datagrams) close() error {
	d.mu.Lock()
	d.closed = true
	var faults []error
	for _, socket := range d.sockets {
		faults = append(faults, socket.Close())
	}
	d.sockets = nil
	d.mu.Unlock()
	d.reading.Wait()
	return errors.Join(faults...)
}

func appendDatagram(b []byte, key ed25519.PrivateKey, to transport.PeerID, run string, packet []byte) []byte {
	b = append(b, datagramMagic...)
	b = append(b, key.Public().(ed25519.PublicKey)...)
	b = append(append(b, byte(len(run))), run...)
	b = append(b, packet...)
	return append(b, ed25519.Sign(key, toBeSigned(b, to))...)
}

// toBeSigned is what the signature of a datagram covers.
func toBeSigned(datagram []byte, to transport.PeerID) []byte {
	return inDomain(append([]byte(datagramLabel+string(to)+"\x00"), datagram...))
}

// splitDatagram reads what appendDatagram wrote, without looking at the signature.
// The packet is a part of the datagram.
func splitDatagram(datagram []byte) (public ed25519.PublicKey, run string, packet []byte, err error) {
	const head = len(datagramMagic) + ed25519.PublicKeySize + 1
	if len(datagram) < head+ed25519.SignatureSize || len(datagram) > maxDatagramSize || string(datagram[:len(datagramMagic)]) != datagramMagic {
		return nil, "", nil, errDatagram
	}
	body := datagram[head : len(datagram)-ed25519.SignatureSize]
	size := int(datagram[head-1])
	if size > transport.MaxRunName || size > len(body) || len(body)-size > maxMarkedPacket {
		return nil, "", nil, errDatagram
	}
	return ed25519.PublicKey(datagram[len(datagramMagic) : head-1]), string(body[:size]), body[size:], nil
}

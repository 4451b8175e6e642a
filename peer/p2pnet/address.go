package p2pnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxAddressText bounds an address that a person types or a record carries.
	maxAddressText = 512
	// maxHostName is the longest name that DNS allows.
	maxHostName = 253
	// maxRecords is how many records of one DNS name are tried.
	maxRecords = 16
)

// The families of addresses that a host name can resolve to: the suffixes of /dns4 and /dns6
// in multiaddrs, and of ip4 and ip6 for net.Resolver.
const (
	anyFamily = ""
	onlyIPv4  = "4"
	onlyIPv6  = "6"
)

// address is a place where a peer may be reached: a host and a TCP port, and the
// peer's id if it was given. Comparable.
type address struct {
	// host is an IP address in canonical form or a DNS name in lower case.
	host string
	port uint16
	// family is anyFamily unless a multiaddr restricted a DNS name.
	family string
	// id is empty if it has yet to be learned.
	id peer.ID
	// relay is the peer that listens there and passes on, if it is not the one that
	// is meant; without a host it is wherever the relay is known to listen.
	relay peer.ID
}

// key is how the Known file names the address.
func (a address) key() string {
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// String is the address in a form that parseAddress takes.
func (a address) String() string {
	if a.relay != "" && a.host == "" {
		return relayPrefix + a.relay.String()
	}
	if a.id == "" && a.relay == "" && a.family == anyFamily {
		return a.key()
	}
	protocol := "dns" + a.family
	if ip, err := netip.ParseAddr(a.host); err == nil && ip.Is4() {
		protocol = "ip4"
	} else if err == nil {
		protocol = "ip6"
	}
	text := fmt.Sprintf("/%s/%s/tcp/%d", protocol, a.host, a.port)
	if a.relay != "" {
		text += "/p2p/" + a.relay.String() + circuitSuffix
	}
	if a.id != "" {
		text += "/p2p/" + a.id.String()
	}
	return text
}

// parseAddress reads an address to join: a multiaddr or host:port.
func parseAddress(text string) (address, error) {
	var (
		a   address
		err error
	)
	switch {
	case len(text) > maxAddressText:
		return address{}, badAddress(text[:32]+"...", fmt.Errorf("it has %d bytes", len(text)))
	case strings.HasPrefix(text, relayPrefix):
		if a.relay, err = parsePeer(transport.PeerID(strings.TrimPrefix(text, relayPrefix))); err == nil {
			return a, nil
		}
	case strings.HasPrefix(text, "/"):
		a, err = parseMultiaddr(text)
	default:
		a, err = parseHostPort(text)
	}
	if err == nil && a.port == 0 {
		err = fmt.Errorf("port 0 cannot be dialled")
	}
	if ip, notIP := netip.ParseAddr(a.host); err == nil && notIP == nil && (ip.IsUnspecified() || ip.IsMulticast()) {
		err = fmt.Errorf("%s names no machine", ip)
	}
	if err != nil {
		return address{}, badAddress(text, err)
	}
	return a, nil
}

// CheckJoin checks the form of an address to join; a fault is an ErrAddress. It does not
// connect.
func CheckJoin(text string) error {
	_, err := parseAddress(text)
	return err
}

func badAddress(text string, reason error) error {
	return fmt.Errorf("%w %q: %w; give host:port (192.0.2.7:4001, [2001:db8::7]:4001, seed.example.org:4001) or a multiaddr (/ip4/192.0.2.7/tcp/4001/p2p/12D3KooW...)",
		ErrAddress, text, reason)
}

func parseHostPort(text string) (address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, fmt.Errorf("it is not host:port")
	}
	return newAddress(host, port, anyFamily)
}

func parseMultiaddr(text string) (address, error) {
	parsed, err := ma.NewMultiaddr(text)
	if err != nil {
		return address{}, err
	}
	if len(parsed) < 2 || parsed[1].Code() != ma.P_TCP {
		return address{}, fmt.Errorf("only a host, /tcp/PORT and perhaps /p2p/ID are understood")
	}
	family, host := anyFamily, parsed[0].Protocol()
	switch host.Code {
	case ma.P_IP4, ma.P_IP6:
	case ma.P_DNS, ma.P_DNS4, ma.P_DNS6:
		family = strings.TrimPrefix(host.Name, "dns")
	default:
		return address{}, fmt.Errorf("/%s is not understood, use /ip4, /ip6 or /dns", host.Name)
	}
	a, err := newAddress(parsed[0].Value(), parsed[1].Value(), family)
	for _, part := range parsed[2:] {
		switch code := part.Code(); {
		case err != nil:
		case code == ma.P_P2P && a.id == "":
			a.id, err = parsePeer(transport.PeerID(part.Value()))
		case code == ma.P_CIRCUIT && a.id != "" && a.relay == "":
			a.id, a.relay = "", a.id
		default:
			err = fmt.Errorf("/%s is not understood there", part.Protocol().Name)
		}
	}
	return a, err
}

func newAddress(host, port, family string) (address, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address{}, fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return address{}, fmt.Errorf("link-local addresses with a zone cannot be dialled")
		}
		return address{host: ip.Unmap().String(), port: uint16(number), family: anyFamily}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !isHostName(name) {
		return address{}, fmt.Errorf("%q is neither an IP address nor a host name", host)
	}
	return address{host: name, port: uint16(number), family: family}, nil
}

func isHostName(name string) bool {
	if name == "" || len(name) > maxHostName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.HasPrefix(label, "-") {
			return false
		}
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// parseListen reads an address to listen on: IP address and port, where port 0 asks for a
// free one, a missing host for every IPv4 interface, and localhost for this machine only.
func parseListen(text string) (ma.Multiaddr, error) {
	parse := parseHostPort
	full := text
	switch {
	case strings.HasPrefix(text, "/"):
		parse = parseMultiaddr
	case strings.HasPrefix(text, ":"):
		full = "0.0.0.0" + text
	}
	a, err := parse(full)
	if err == nil && (a.id != "" || a.relay != "") {
		err = fmt.Errorf("the id is that of the key, not of the address")
	}
	var ip netip.Addr
	switch {
	case err != nil:
	case a.host == "localhost":
		of, _ := net.InterfaceAddrs() // without any, listening tells why
		ip = ownAddress(of)
	default:
		ip, err = netip.ParseAddr(a.host)
	}
	if err != nil {
		return nil, fmt.Errorf("%w to listen on %q: %w; give an IP address or localhost and a port, as in 0.0.0.0:4001, [::]:4001 or /ip4/127.0.0.1/tcp/0",
			ErrAddress, text, err)
	}
	return manet.FromNetAddr(net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, a.port)))
}

// ownAddress is the loopback address of a machine that has these addresses: 127.0.0.1, or ::1
// if the machine has no other loopback address.
func ownAddress(of []net.Addr) netip.Addr {
	found := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, a := range of {
		if on, ok := a.(*net.IPNet); ok && on.IP.IsLoopback() {
			if on.IP.To4() != nil {
				return netip.AddrFrom4([4]byte{127, 0, 0, 1})
			}
			found = netip.IPv6Loopback()
		}
	}
	return found
}

// resolve returns the IP addresses of the host, at most maxRecords.
func (a address) resolve(ctx context.Context) (found []ma.Multiaddr, err error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip"+a.family, a.host)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrUnreachable, err)
	}
	for _, ip := range ips[:min(len(ips), maxRecords)] {
		at := netip.AddrPortFrom(ip.Unmap().WithZone(""), a.port)
		one, err := manet.FromNetAddr(net.TCPAddrFromAddrPort(at))
		if err == nil && !slices.ContainsFunc(found, one.Equal) {
			found = append(found, one)
		}
	}
	return found, nil
}

package settings

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// PeerIDPrefix begins the ids of all peers with Ed25519 keys.
const PeerIDPrefix = "12D3KooW"

func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && isPort(port)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// dialled tells whether an address has a port that can be dialled: port 0 is for listening only.
func dialled(address string) bool {
	at := strings.Split(address, "/")
	port := at[min(4, len(at)-1)]
	n, err := strconv.Atoi(port[strings.LastIndexByte(port, ':')+1:])
	return err == nil && n > 0
}

// multiaddr is /PROTOCOL/HOST/tcp/PORT, with or without /p2p/ID. The address of a relay may go
// on with /p2p-circuit/p2p/ID. Package peer checks the rest of an id.
var multiaddr = regexp.MustCompile(`^/(ip4|ip6|dns[46]?)/([^/]+)/tcp/([^/]+)(` + toPeer + `(/p2p-circuit` + toPeer + `)?)?$`)

const toPeer = `/p2p/` + PeerIDPrefix + `[^/]*`

func isMultiaddr(text string) bool {
	parts := multiaddr.FindStringSubmatch(text)
	if parts == nil || !isPort(parts[3]) {
		return false
	}
	ip, err := netip.ParseAddr(parts[2])
	switch parts[1] {
	case "ip4":
		return err == nil && ip.Is4()
	case "ip6":
		return err == nil && ip.Is6()
	}
	return true
}

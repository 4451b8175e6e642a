package settings

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// PeerIDPrefix is what the ids of Ed25519 keys begin with.
const PeerIDPrefix = "12D3KooW"

func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && isPort(port)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// dialled tells whether an address has a port that can be dialled: 0 is for listening.
func dialled(address string) bool {
	at := strings.Split(address, "/")
	port := at[min(4, len(at)-1)]
	n, err := strconv.Atoi(port[strings.LastIndexByte(port, ':')+1:])
	return err == nil && n > 0
}

// isMultiaddr tells whether text is PROTOCOL/HOST/tcp/PORT with or without
// /p2p/ID, all after a slash, and perhaps /p2p-circuit/p2p/ID behind a relay's. Whether the
// id is whole, package peer knows.
func isMultiaddr(text string) bool {
	text, behind, through := strings.Cut(text, "/p2p-circuit/p2p/")
	if through && (!strings.HasPrefix(behind, PeerIDPrefix) || !strings.Contains(text, "/p2p/")) {
		return false
	}
	parts := strings.Split(text, "/")
	if len(parts) != 5 && len(parts) != 7 || parts[0] != "" || parts[3] != "tcp" || !isPort(parts[4]) {
		return false
	}
	if len(parts) == 7 && (parts[5] != "p2p" || !strings.HasPrefix(parts[6], PeerIDPrefix)) {
		return false
	}
	host := parts[2]
	ip, err := netip.ParseAddr(host)
	switch parts[1] {
	case "ip4":
		return err == nil && ip.Is4()
	case "ip6":
		return err == nil && ip.Is6()
	}
	return host != "" && slices.Contains([]string{"dns", "dns4", "dns6"}, parts[1])
}

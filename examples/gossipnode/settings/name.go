package settings

import (
	"os"
	"strings"

	"github.com/seed-97356399/murmuration/peer/control"
)

// nameFlag is the flag with the name of a peer.
const nameFlag = "name"

// PeerName is the name of the peer: that of --name, or this machine's.
func (s watchSettings) PeerName() string {
	if s.Name != "" {
		return s.Name
	}
	host, _ := os.Hostname() // empty if it is not known
	return ShortName(host, control.MaxName)
}

// ShortName is the printable part of a name, cut to at most so many bytes.
func ShortName(name string, most int) string {
	name = control.Printable(name)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

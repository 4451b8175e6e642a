package settings

import (
	"os"
	"strings"

	"github.com/seed-97356399/murmuration/peer/control"
)

// nameFlag is the flag of what a peer is called.
const nameFlag = "name"

// PeerName is what the peer is called: that of --name, or this machine's.
func (s watchSettings) PeerName() string {
	if s.Name != "" {
		return s.Name
	}
	host, _ := os.Hostname() // empty where it is not known
	return ShortName(host, control.MaxName)
}

// ShortName is what of a name can be shown, at most so many bytes of it.
func ShortName(name string, most int) string {
	name = control.Printable(name)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

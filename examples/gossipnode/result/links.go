package result

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// LinkResult is what a peer has measured of the way to a partner, and the codec on
// which that has decided.
type LinkResult struct {
	Peer             string  `json:"peer"`
	Partner          string  `json:"partner"`
	Codec            string  `json:"codec"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	RoundTripSeconds float64 `json:"round_trip_seconds"`
	Exchanges        uint64  `json:"exchanges"`
}

// maxShownLinks bounds the lines that a summary has on links.
const maxShownLinks = 32

// linkSummary tells in words which codec each link has decided on.
func linkSummary(links []LinkResult) string {
	var text strings.Builder
	for i, l := range links {
		if i == maxShownLinks {
			fmt.Fprintf(&text, "... and %d more links.\n", len(links)-i)
			break
		}
		trip := time.Duration(l.RoundTripSeconds * float64(time.Second)).Round(10 * time.Microsecond)
		fmt.Fprintf(&text, "%s to %s: %s, for %s/s and a round trip of %s in %s.\n",
			seam.PeerID(l.Peer).Short(), seam.PeerID(l.Partner).Short(), l.Codec, cli.Size(uint64(l.BytesPerSecond)), trip, cli.Plural(l.Exchanges, "exchange"))
	}
	return text.String()
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// linkResult is what a peer has measured of the way to a partner, and the codec on
// which that has decided.
type linkResult struct {
	Peer             string  `json:"peer"`
	Partner          string  `json:"partner"`
	Codec            string  `json:"codec"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	RoundTripSeconds float64 `json:"round_trip_seconds"`
	Exchanges        uint64  `json:"exchanges"`
}

// linksOf are the links of a peer that decide on codecs.
func linksOf(s peer.Stats) []linkResult {
	var links []linkResult
	for _, l := range s.Exchanges.Links {
		if l.Codec != "" {
			links = append(links, linkResult{
				Peer: string(s.Self), Partner: string(l.Partner), Codec: l.Codec,
				BytesPerSecond: l.Rate, RoundTripSeconds: l.Round.Seconds(), Exchanges: l.Exchanges,
			})
		}
	}
	return links
}

// maxShownLinks bounds the lines that a summary has on links.
const maxShownLinks = 32

// linkSummary tells in words which codec each link has decided on.
func linkSummary(links []linkResult) string {
	var text strings.Builder
	for i, l := range links {
		if i == maxShownLinks {
			fmt.Fprintf(&text, "... and %d more links.\n", len(links)-i)
			break
		}
		trip := time.Duration(l.RoundTripSeconds * float64(time.Second)).Round(10 * time.Microsecond)
		fmt.Fprintf(&text, "%s to %s: %s, for %s/s and a round trip of %s in %s.\n",
			short(l.Peer), short(l.Partner), l.Codec, cli.Size(uint64(l.BytesPerSecond)), trip, cli.Plural(l.Exchanges, "exchange"))
	}
	return text.String()
}

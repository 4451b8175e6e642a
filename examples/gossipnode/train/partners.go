package train

import (
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/arrivals"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// seen is whom a peer has seen.
type seen struct {
	followed *result.Followed // what became of what arrived; nil without --follow
	ledger   *arrivals.Ledger // what was read of which file; nil without --follow
	recent   recent
	tasks    *result.Tasks // what became of the tasks of --tasks; nil without
	members  int           // the most at once
	alone    bool
	partners partners
	share    int // of a global batch, by the members of the moment; 0 if it is to be found
}

// partners are the peers with which this peer completed exchanges, up to settings.MaxPeers.
type partners struct {
	mu    sync.Mutex
	all   map[transport.PeerID]struct{}
	first time.Duration // from the peer's start to the end of its first exchange
}

func (p *partners) met(id transport.PeerID, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == 0 {
		p.first = after
	}
	if p.all == nil {
		p.all = make(map[transport.PeerID]struct{})
	}
	if len(p.all) < settings.MaxPeers {
		p.all[id] = struct{}{}
	}
}

// count is the number of partners, and the time until the first exchange was complete.
func (p *partners) count() (met int, first time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all), p.first
}

// linksOf are the links of a peer for which --codec auto has chosen a codec.
func linksOf(s stats.Peer) []result.LinkResult {
	var links []result.LinkResult
	for _, l := range s.Exchanges.Links {
		if l.Codec != "" {
			links = append(links, result.LinkResult{
				Peer: string(s.Self), Partner: string(l.Partner), Codec: l.Codec,
				BytesPerSecond: l.Rate, RoundTripSeconds: l.Round.Seconds(), Exchanges: l.Exchanges,
			})
		}
	}
	return links
}

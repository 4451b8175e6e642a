package p2pnet

import (
	"cmp"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// laneOrder puts distinct addresses in the order in which a lane tries them.
// Loopback addresses are left out unless beside, the address of Open's connection,
// is one: on another machine, a loopback address is that machine itself.
func laneOrder(known []ma.Multiaddr, beside ma.Multiaddr, lane int) []ma.Multiaddr {
	var order []ma.Multiaddr
	for _, a := range known {
		remote := beside != nil && !manet.IsIPLoopback(beside)
		if !slices.ContainsFunc(order, a.Equal) && !(remote && manet.IsIPLoopback(a)) {
			order = append(order, a)
		}
	}
	if len(order) == 0 {
		return nil
	}
	first := slices.IndexFunc(order, func(a ma.Multiaddr) bool { return beside != nil && a.Equal(beside) })
	if first < 0 {
		// Who dialled us did so from another port than the one it listens on.
		first = max(0, slices.IndexFunc(order, func(a ma.Multiaddr) bool { return sameHost(a, beside) }))
	}
	first = (first + lane) % len(order)
	return slices.Concat(order[first:], order[:first])
}

func sameHost(a, b ma.Multiaddr) bool {
	ip, err := manet.ToIP(a)
	if err != nil || b == nil {
		return false
	}
	other, err := manet.ToIP(b)
	return err == nil && ip.Equal(other)
}

// silent remembers addresses at which a peer did not answer, so that lanes do
// not wait for them again: a machine announces all its addresses, and other
// machines cannot reach some of them.
type silent struct {
	since *lru.Cache[silentKey, time.Time]
}

type silentKey struct {
	peer    peer.ID
	address string
}

const (
	// silentAfter is for how long an address has said nothing when a caller who gives
	// up first still counts it as silent.
	silentAfter = time.Second
	// silentFor is how long an address comes last.
	silentFor = 10 * time.Minute
	// maxSilent bounds the memory.
	maxSilent = 1024
)

func newSilent() silent {
	since, _ := lru.New[silentKey, time.Time](maxSilent) // fails for sizes below one only
	return silent{since}
}

func (s silent) note(id peer.ID, at ma.Multiaddr, now time.Time) {
	s.since.Add(silentKey{id, at.String()}, now)
}

// last moves the addresses that did not answer behind the others.
func (s silent) last(id peer.ID, addresses []ma.Multiaddr, now time.Time) {
	rank := func(a ma.Multiaddr) int {
		if at, ok := s.since.Peek(silentKey{id, a.String()}); ok && now.Sub(at) < silentFor {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(addresses, func(a, b ma.Multiaddr) int { return cmp.Compare(rank(a), rank(b)) })
}

package swim

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// lost picks whom to contact next among those not alive, at most so many: a seed
// first, so that halves of a flock that have lost many others still meet, and then
// those that were tried least since they departed. Each member has an order of its
// own among equals: together they try all of them sooner.
func (b *book) lost(now time.Time, most int) []seam.PeerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []seam.PeerID
	for peer, e := range b.entries {
		if e.alive || !e.seed && (!e.heard() || !e.met || now.Sub(e.departed) > rejoinFor) || e.heard() && !b.admits(peer, e.mark) {
			continue
		}
		all = append(all, peer)
	}
	slices.SortFunc(all, func(x, y seam.PeerID) int {
		if c := cmp.Compare(b.entries[x].attempts, b.entries[y].attempts); c != 0 {
			return c
		}
		return cmp.Compare(b.turn(x), b.turn(y))
	})
	if first := slices.IndexFunc(all, func(peer seam.PeerID) bool { return b.entries[peer].seed }); first > 0 {
		seed := all[first]
		all = slices.Insert(slices.Delete(all, first, first+1), 0, seed)
	}
	all = all[:min(len(all), most)]
	for _, peer := range all {
		b.entries[peer].attempts++
	}
	return all
}

// turn is a peer's place in this member's own order of them all.
func (b *book) turn(peer seam.PeerID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(b.identity.Self()))
	h.Write([]byte(peer))
	return h.Sum64()
}

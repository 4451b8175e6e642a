package donor

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestManyWhoAskKeepNobodyOut: more newcomers than are remembered, who ask and ask, from
// one block of addresses or from several, keep no place empty and one from another block
// not out.
func TestManyWhoAskKeepNobodyOut(t *testing.T) {
	for _, blocks := range []int{1, 8} {
		t.Run(fmt.Sprint(blocks), func(t *testing.T) {
			p := newPlaces(4)
			now, in := time.Unix(0, 0), map[seam.PeerID]time.Time{}
			ask := func(id seam.PeerID, block string) bool {
				at := &place{peer: id, block: block, yield: func() { delete(in, id) }}
				if _, has := in[id]; has || !p.enter(at, now) {
					return has
				}
				in[id] = now
				return true
			}
			const crowd, each = 3 * maxWaiting, time.Millisecond // each asks every 1.5 s
			entered := 0
			for i := range 60 * int(time.Second/each) {
				now = now.Add(each)
				n := i % crowd
				if ask(seam.PeerID(fmt.Sprint("crowd-", n)), fmt.Sprint("block-", n%blocks)) {
					entered++
				}
				if i > 2*crowd && i%500 == 0 && ask("honest", "another") {
					t.Logf("in after %s, %d others before", now.Sub(time.Unix(0, 0)), entered)
					return
				}
			}
			t.Errorf("not in after a minute; %d of the crowd were, %d places are held", entered, p.count())
		})
	}
}

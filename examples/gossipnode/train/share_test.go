package train

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestSharesOfAGlobalBatch: parts add up, those of faster members are larger, and what one tells counts within a bound.
func TestSharesOfAGlobalBatch(t *testing.T) {
	for name, c := range map[string]struct {
		speeds []float64
		want   []int
	}{
		"nobody tells": {[]float64{0, 0, 0}, []int{86, 85, 85}},
		"by speed":     {[]float64{100, 100, 200}, []int{64, 64, 128}},
		"one is new":   {[]float64{100, 0, 100, 100}, []int{64, 64, 64, 64}},
		"one boasts":   {[]float64{100, 1e300, 100, 100, 100}, []int{32, 128, 32, 32, 32}},
		"one is alone": {[]float64{7}, []int{256}},
	} {
		var members []control.Member
		for i, v := range c.speeds {
			members = append(members, control.Member{ID: transport.PeerID(fmt.Sprint(i)), Digest: control.Digest{Samples: v}})
			if i == 1 {
				members = append(members, control.Member{ID: "idle", State: control.Idle})
			}
		}
		for i, want := range c.want {
			if got := shareOf(256, members, transport.PeerID(fmt.Sprint(i))); got != want {
				t.Errorf("%s: member %d has %d, want %d", name, i, got, want)
			}
		}
	}
}

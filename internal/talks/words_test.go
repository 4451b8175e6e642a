package talks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// slowStream takes its time to be reset, as one does whose transport has to send that.
type slowStream struct {
	seam.Stream
	from  seam.PeerID
	reset chan struct{}
}

func (s slowStream) Remote() seam.PeerID { return s.from }

func (s slowStream) Reset() {
	time.Sleep(time.Second)
	close(s.reset)
}

// TestNoWordWaitsForAStreamToBeReset: neither an older stream in whose place another has
// come nor those that the peer's end resets keep words from being taken up.
func TestNoWordWaitsForAStreamToBeReset(t *testing.T) {
	for name, c := range map[string]struct {
		reset func(w *words)
		taken bool
	}{
		"an older stream": {func(w *words) { w.listen(slowStream{from: "a"}) }, true},
		"the end":         {func(w *words) { w.EndWords(time.Minute) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w words
				first := slowStream{from: "a", reset: make(chan struct{})}
				if !w.listen(first) {
					t.Fatal("the first stream is not taken")
				}
				go c.reset(&w)
				time.Sleep(time.Millisecond)
				began := time.Now()
				if taken := w.listen(slowStream{from: "b"}); taken != c.taken {
					t.Errorf("taken up %v, want %v", taken, c.taken)
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("another partner's words wait for %s", waited)
				}
				<-first.reset
			})
		})
	}
}

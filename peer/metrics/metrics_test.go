package metrics

import (
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// still is a peer whose numbers stay as they are.
type still struct {
	stats   stats.Peer
	tallies stats.Counters
}

func (s still) Stats() stats.Peer         { return s.stats }
func (s still) Counters() stats.Counters  { return s.tallies }
func (s still) Members() []control.Member { return nil }
func (s still) State() control.State      { return control.Training }

// TestText shows labels that have to be escaped, what is no number, a histogram, and that what
// does not exist is not told.
func TestText(t *testing.T) {
	s := still{stats: stats.Peer{Self: "self", Name: "a \"b\"\\\n", Loss: math.NaN()}}
	s.stats.Exchanges.Blocked.Counts[0], s.stats.Exchanges.Blocked.Sum = 3, time.Second
	text := string(Text(s, nil))
	for _, want := range []string{
		"# TYPE murmuration_peer_info gauge\n" + `murmuration_peer_info{name="a \"b\"\\\n",peer="self",role="",state="training"} 1` + "\n",
		"murmuration_loss NaN\n", `murmuration_slice_wait_seconds_bucket{le="4.096e-06"} 3` + "\n",
		`murmuration_slice_wait_seconds_bucket{le="+Inf"} 3` + "\nmurmuration_slice_wait_seconds_sum 1\nmurmuration_slice_wait_seconds_count 3\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "checkpoint_age") {
		t.Error("the age of checkpoints is told, and none are kept")
	}
}

func TestHandler(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(still{}, func() (time.Duration, bool) { return time.Minute, true }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || !strings.Contains(string(body), "murmuration_checkpoint_age_seconds 60\n") || !strings.HasPrefix(w.Result().Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%v %v\n%s", err, w.Result().Header, body)
	}
}

package metrics

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/metrics"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// still is a peer whose numbers stay as they are.
type still struct {
	stats   stats.Peer
	tallies stats.Counters
	members []control.Member
	state   control.State
}

func (s still) Stats() stats.Peer         { return s.stats }
func (s still) Counters() stats.Counters  { return s.tallies }
func (s still) Members() []control.Member { return s.members }
func (s still) State() control.State      { return s.state }

// busyPeer is a peer that has something of everything.
func busyPeer() still {
	var waits, rounds stats.Histogram
	waits.Counts[0], waits.Counts[60], waits.Sum = 7, 2, time.Millisecond
	rounds.Counts[80], rounds.Sum, rounds.Longest = 3, 6*time.Millisecond, 2*time.Millisecond
	s := still{
		stats: stats.Peer{Self: "self", Name: "build \"1\"", Role: "active", Joined: true, Steps: 12, Loss: 0.5, Members: 3, Exchanges: stats.Exchanges{
			Initiated: 4, Served: 5, BytesSent: 6, Blocked: waits,
		}},
		tallies: stats.Counters{
			Samples: 384, Refused: map[string]uint64{"busy": 2}, Declined: map[string]uint64{"role": 1}, Failed: map[string]uint64{"cut": 1},
			TransportRefused: map[string]uint64{"gave way": 4}, MembershipRefused: map[string]uint64{"malformed": 5},
			Dropped: map[string]uint64{"time": 3}, Traffic: map[string]stats.Traffic{"lattice6+4": {Sent: 6, Received: 9}, "none": {Sent: 1}},
			Rounds: rounds, Durations: rounds,
		},
		members: []control.Member{{ID: "self", State: control.Training}, {ID: "b", State: control.Training}, {ID: "c", State: 77}},
		state:   control.Training,
	}
	s.tallies.Age.Counts[0], s.tallies.Age.Counts[2], s.tallies.Age.Sum = 3, 1, 2
	for range stats.MaxLinks {
		id := "partner-" + string(rune('a'+len(s.stats.Exchanges.Links)))
		s.stats.Exchanges.Links = append(s.stats.Exchanges.Links, stats.Link{Partner: transport.PeerID(id), Codec: "lattice6+4", Rate: 7, Round: time.Second})
	}
	s.stats.Exchanges.Biases = []stats.Bias{{Partner: "partner-a", Bias: 0.25, Exchanges: 16}}
	s.stats.Exchanges.Harms = []stats.Harm{{Partner: "partner-a", Harm: 1.5, Trust: 0.375, Exchanges: 16}}
	return s
}

func anHourAgo() (time.Duration, bool) { return time.Hour, true }

// get reads a page of a server.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// TestServer shows that a peer's numbers are served, and no more once closed.
func TestServer(t *testing.T) {
	server, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := server.web.Addr().String()
	if _, err := Listen(address); err == nil || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("an address in use: error %v", err)
	}
	server.Serve(busyPeer(), anHourAgo, false)
	defer http.DefaultClient.CloseIdleConnections()
	_, text := get(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`murmuration_peer_info{name="build \"1\"",peer="self",role="active",state="training"} 1`,
		"murmuration_steps_total 12\n", "murmuration_samples_total 384\n", "murmuration_loss 0.5\n",
		`murmuration_members{state="training"} 2`, `murmuration_members{state="unknown"} 1`,
		`murmuration_exchanges_total{outcome="completed",reason="none",side="served"} 5`,
		`murmuration_exchanges_total{outcome="refused",reason="busy",side="initiated"} 2`,
		`murmuration_exchanges_total{outcome="failed",reason="time",side="served"} 3`,
		`murmuration_exchange_bytes_total{codec="lattice6+4",direction="received"} 9`,
		`murmuration_link_bytes_per_second{codec="lattice6+4",partner="partner-a"} 7`, `murmuration_link_round_trip_seconds{partner="partner-a"} 1`,
		`murmuration_partner_pull_ratio{partner="partner-a"} 0.25`,
		`murmuration_partner_harm{partner="partner-a"} 1.5`, `murmuration_partner_trust{partner="partner-a"} 0.375`,
		`murmuration_transport_refused_total{reason="gave way"} 4`, `murmuration_membership_refused_total{reason="malformed"} 5`,
		`murmuration_slice_wait_seconds_count 9`, `murmuration_slice_wait_seconds_sum 0.001`, `murmuration_slice_wait_seconds_bucket{le="4.096e-06"} 7`,
		`murmuration_exchange_staleness_steps_bucket{le="0"} 3`, `murmuration_exchange_staleness_steps_bucket{le="3"} 4`,
		"murmuration_checkpoint_age_seconds 3600\n", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/debug/pprof/": http.StatusNotFound} {
		if status, text := get(t, "http://"+address+path); status != want {
			t.Errorf("%s answers %d: %s", path, status, text)
		}
	}
	for range 2 {
		if err := server.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("it still serves")
	}
}

// TestProfiles shows that profiles are served where they are asked for.
func TestProfiles(t *testing.T) {
	server, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Serve(busyPeer(), nil, true)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if status, text := get(t, "http://"+server.web.Addr().String()+"/debug/pprof/"); status != http.StatusOK || !strings.Contains(text, "goroutine") {
		t.Errorf("profiles: %d %s", status, text)
	}
}

// TestReadiness shows when a peer is ready.
func TestReadiness(t *testing.T) {
	for _, c := range []struct {
		joined bool
		state  control.State
		want   bool
		says   string
	}{
		{false, control.Training, false, "--join"},
		{true, control.Joining, false, "joining"},
		{true, control.Copying, false, "copying"},
		{true, control.Training, true, "step 3"},
		{true, control.Paused, true, "paused"},
		{true, control.Over, true, "serving"},
	} {
		text, ready := readiness(still{stats: stats.Peer{Joined: c.joined, Steps: 3}, state: c.state})
		if ready != c.want || !strings.Contains(text, c.says) {
			t.Errorf("joined %v, %v: ready %v, %q", c.joined, c.state, ready, text)
		}
	}
}

// TestLint shows that what is served is in Prometheus' format, and keeps to its conventions.
func TestLint(t *testing.T) {
	problems, err := promlint.New(bytes.NewReader(metrics.Text(busyPeer(), anHourAgo))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// one is a model that is served.
type one struct{ serve.Model }

func (one) About() serve.About { return serve.About{} }

// ofPredictions are the names of the metrics of a server of predictions.
func ofPredictions() (all []string) {
	models, w := new(serve.Holder), httptest.NewRecorder()
	models.Swap(one{}, 1)
	h := serve.Handler(models, "")
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/predict", http.NoBody))
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return namesIn(w.Body.Bytes())
}

// names are the names of the metrics of a peer that has something of everything, sorted.
func names() (all []string) { return namesIn(metrics.Text(busyPeer(), anHourAgo)) }

func namesIn(text []byte) (all []string) {
	for _, found := range regexp.MustCompile(`(?m)^# TYPE ([a-z_]+) `).FindAllSubmatch(text, -1) {
		all = append(all, string(found[1]))
	}
	slices.Sort(all)
	return all
}

// TestDocumented shows that the operator's page names each metric and no other,
// and that the dashboard for Grafana asks for none that is not there.
func TestDocumented(t *testing.T) {
	known := append(names(), ofPredictions()...)
	for file, complete := range map[string]bool{"../../../docs/OPERATING.md": true, "../../grafana/murmuration.json": false, "../../../docs/TUNING.md": false} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var named []string
		for _, name := range regexp.MustCompile(`murmuration_[a-z_]+`).FindAllString(string(text), -1) {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); slices.Contains(known, base) {
					name = base
				}
			}
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no metric %s", file, name)
			}
			named = append(named, name)
		}
		for _, name := range known {
			if complete && !slices.Contains(named, name) {
				t.Errorf("%s does not tell of %s", file, name)
			}
		}
		if len(named) == 0 {
			t.Errorf("%s names no metric", file)
		}
	}
}

// BenchmarkScrape measures what an answer to Prometheus costs.
func BenchmarkScrape(b *testing.B) {
	handler := both(busyPeer(), anHourAgo, prometheus.NewRegistry())
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}

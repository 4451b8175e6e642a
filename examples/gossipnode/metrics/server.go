package metrics

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/web"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/metrics"
)

const (
	// timeout bounds a request for metrics; profileTimeout bounds one for a profile, whose duration the request sets.
	timeout        = 10 * time.Second
	profileTimeout = 2 * time.Minute
	// maxScrapes bounds the requests for metrics at a time.
	maxScrapes = 4
)

// Server serves a peer's metrics at /metrics, in Prometheus' format, its health at /healthz, its readiness at
// /readyz, and, if wanted, profiles at /debug/pprof/.
type Server struct{ web *web.Server }

// Listen opens the address, so that an address in use is noticed before anything else begins. Serve answers requests.
func Listen(address string) (*Server, error) {
	server, err := web.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w: give another address with --metrics", err)
	}
	return &Server{web: server}, nil
}

// Serve answers requests for a peer until Close.
func (m *Server) Serve(p metrics.Peer, checkpointAge func() (time.Duration, bool), profiles bool) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", both(p, checkpointAge, registry))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := readiness(p)
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, text)
	})
	write := timeout + time.Second
	if profiles {
		write = profileTimeout
		profile(mux)
	}
	m.web.Serve(&http.Server{Handler: mux, ReadHeaderTimeout: timeout, ReadTimeout: timeout, WriteTimeout: write})
}

// both answers with the metrics of the peer and then of the process, for a few requests at a time.
func both(p metrics.Peer, checkpointAge func() (time.Duration, bool), process prometheus.Gatherer) http.Handler {
	places := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			http.Error(w, "too many ask for metrics at once", http.StatusServiceUnavailable)
			return
		}
		metrics.Handler(p, checkpointAge).ServeHTTP(w, r)
		families, err := process.Gather()
		for _, f := range families {
			if _, writing := expfmt.MetricFamilyToText(w, f); writing != nil {
				return // the client has gone
			}
		}
		if err != nil {
			fmt.Fprintf(w, "# of the process not all is known: %q\n", err.Error())
		}
	})
}

// profile serves the profiles of package runtime. Importing net/http/pprof also adds them to the default mux, which
// this program never serves.
func profile(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// Close stops serving and waits until all requests have ended. A nil server does nothing.
func (m *Server) Close() error {
	if m == nil {
		return nil
	}
	return m.web.Close()
}

// readiness tells whether a peer does its work: it has joined, and trains, is paused by its operator, or serves
// others that still train.
func readiness(p metrics.Peer) (text string, ready bool) {
	stats, state := p.Stats(), p.State()
	switch {
	case !stats.Joined:
		return "not ready: no member has answered yet; check --join, and that its port can be reached", false
	case state == control.Joining || state == control.Copying:
		return fmt.Sprintf("not ready: %s", state), false
	case state == control.Over:
		return "ready: the work is done, serving the others", true
	}
	return fmt.Sprintf("ready: %s, step %d", state, stats.Steps), true
}

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-97356399/murmuration/peer"
)

// metricsTimeout bounds a request for metrics.
const metricsTimeout = 10 * time.Second

// metricsServer serves what a peer counts at /metrics, in Prometheus' format.
type metricsServer struct {
	listener net.Listener
	server   http.Server
	done     chan error
}

// listenMetrics takes the address, so that one that is in use is noticed before
// anything else begins; serve answers.
func listenMetrics(address string) (*metricsServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w: give another address with --metrics", err)
	}
	return &metricsServer{listener: listener}, nil
}

func (m *metricsServer) serve(stats func() peer.Stats) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{stats})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	m.server = http.Server{Handler: mux, ReadHeaderTimeout: metricsTimeout, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout}
	m.done = make(chan error, 1)
	go func() { m.done <- m.server.Serve(m.listener) }()
}

// Close stops serving and waits for it. A nil server has nothing to stop.
func (m *metricsServer) Close() error {
	if m == nil {
		return nil
	}
	if m.done == nil {
		return m.listener.Close()
	}
	err := m.server.Close()
	if served := <-m.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	m.done <- http.ErrServerClosed // Close may be called again
	return err
}

// collector asks a peer for its numbers whenever Prometheus does.
type collector struct{ stats func() peer.Stats }

// Describe implements prometheus.Collector; that it describes nothing makes the
// collector an unchecked one, which may name its metrics as it goes.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.stats()
	put := func(name, help string, kind prometheus.ValueType, value float64, labels ...string) {
		names, values := []string(nil), []string(nil)
		for i := 0; i+1 < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("murmuration_"+name, help, names, nil), kind, value, values...)
	}
	put("steps_total", "Gradient steps of this peer.", prometheus.CounterValue, float64(s.Steps))
	put("flock_steps", "Estimated gradient steps of all peers.", prometheus.GaugeValue, float64(s.FlockSteps))
	put("progress", "Share of the flock's work that is done.", prometheus.GaugeValue, s.Progress)
	put("loss", "Running mean of the training loss.", prometheus.GaugeValue, s.Loss)
	put("members", "Members of the run, this one included.", prometheus.GaugeValue, float64(s.Members))
	put("consensus_distance", "Estimated distance of a model from the mean of the flock.", prometheus.GaugeValue, s.Exchanges.ConsensusDistance)
	for outcome, count := range map[string]uint64{
		"initiated": s.Exchanges.Initiated, "served": s.Exchanges.Served, "refused": s.Exchanges.Refused,
		"declined": s.Exchanges.Declined, "failed": s.Exchanges.Failed,
	} {
		put("exchanges_total", "Exchanges by how they ended.", prometheus.CounterValue, float64(count), "outcome", outcome)
	}
	put("slices_in_doubt", "Slices of broken exchanges whose outcome the partner has not told yet.", prometheus.GaugeValue, float64(s.Exchanges.InDoubt))
	put("slices_settled_total", "Slices of broken exchanges that were cleared up with the partner.", prometheus.CounterValue, float64(s.Exchanges.Settled))
	put("slices_lost_total", "Slices of broken exchanges that were given up.", prometheus.CounterValue, float64(s.Exchanges.Lost))
	put("quarantined_peers", "Peers that are kept away because they broke the rules.", prometheus.GaugeValue, float64(s.Quarantined))
	put("bytes_total", "Bytes that exchanges moved.", prometheus.CounterValue, float64(s.Exchanges.BytesSent), "direction", "sent")
	put("bytes_total", "Bytes that exchanges moved.", prometheus.CounterValue, float64(s.Exchanges.BytesReceived), "direction", "received")
	for _, l := range s.Exchanges.Links {
		put("link_bytes_per_second", "What the link to a partner carries.", prometheus.GaugeValue, l.Rate, "partner", string(l.Partner), "codec", l.Codec)
		put("link_round_trip_seconds", "Time from a question to a partner to its answer.", prometheus.GaugeValue, l.Round.Seconds(), "partner", string(l.Partner))
	}
}

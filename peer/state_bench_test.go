package peer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// BenchmarkState measures how soon a joiner has the model of two state servers, over TLS on loopback. It reports the
// medians: seconds of the verified copy (copy-s), and from the joiner's start until it may train (join-s). What moving
// bytes takes on the same machine, BenchmarkStream of package p2pnet tells. For five rounds of 25 million parameters:
//
//	go test ./peer ./peer/p2pnet -run '^$' -bench '(State|Stream)$' -benchtime 5x
func BenchmarkState(b *testing.B) {
	const parameters = 25_000_000
	var join []string
	for number := range 2 {
		p := startDonor(b, parameters, join, float32(number))
		join = append(join, p.JoinAddresses()[0])[:1]
		if err := stayAsItIs(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(tensor.ValueSize * parameters)
	var copies, joins []float64
	for b.Loop() {
		began := time.Now()
		joiner := startDonor(b, parameters, join, 2)
		if err := stayAsItIs(b.Context(), joiner); err != nil {
			b.Fatal(err)
		}
		joins = append(joins, time.Since(began).Seconds())
		state := joiner.Stats().State
		if err := joiner.Close(); err != nil || state.Servers == 0 {
			b.Fatalf("no copy: %+v, %v", state, err)
		}
		copies = append(copies, state.Took.Seconds())
	}
	for unit, list := range map[string][]float64{"copy-s": copies, "join-s": joins} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}

// startDonor starts a peer whom no exchange disturbs.
func startDonor(b *testing.B, parameters int, join []string, value float32) *peer.Peer {
	b.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "model", Shape: []int{parameters}})
	if err != nil {
		b.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = value
	}
	p, err := peer.Start(b.Context(), peer.Config{
		Run:      "state",
		Params:   params,
		Join:     join,
		Network:  peer.Network{Listen: []string{"127.0.0.1:0"}},
		Training: peer.Training{Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 1e-3, Shape: optim.Constant}, Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1 << 20}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// stayAsItIs takes a step that changes nothing.
func stayAsItIs(ctx context.Context, p *peer.Peer) error {
	return p.Step(ctx, func(_, _ tensor.Vector) (peer.Result, error) { return peer.Result{}, nil })
}

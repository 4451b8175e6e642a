package peer_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// BenchmarkState measures how soon a joiner has the model of two state servers, over TLS on loopback,
// in turn with moving the same bytes once through one stream of the same kind. It reports the
// medians: seconds of the verified copy (copy-s), from the joiner's start until it may train
// (join-s), of the bytes alone (bytes-s), and how many times as long as the bytes the copy takes.
// For five rounds of 25 million parameters:
//
//	go test ./peer -run '^$' -bench 'State$' -benchtime 5x
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
	move := bytesAlone(b, tensor.ValueSize*parameters)
	var copies, joins, bytes, ratios []float64
	for b.Loop() {
		before := move()
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
		alone := (before + move()) / 2 // stands for the machine as it was meanwhile
		copies, bytes = append(copies, state.Took.Seconds()), append(bytes, alone)
		ratios = append(ratios, state.Took.Seconds()/alone)
	}
	for unit, list := range map[string][]float64{"copy-s": copies, "join-s": joins, "bytes-s": bytes, "times-bytes": ratios} {
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

// bytesAlone prepares two transports, and returns what moves so many bytes from one to the
// other and tells the seconds that it took.
func bytesAlone(b *testing.B, size int) func() float64 {
	b.Helper()
	const protocol, run, chunk = transport.Protocol("/bench/1"), "bench", 128 << 10
	ends := make([]*p2pnet.Transport, 2)
	for i := range ends {
		t, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { t.Close() })
		ends[i] = t
	}
	ask, give := ends[0], ends[1]
	room := make([]byte, chunk)
	_, err := give.Handle(protocol, run, func(s transport.Stream) {
		defer s.Close()
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			s.Reset()
			return
		}
		for left := size; left > 0; left -= chunk {
			if _, err := s.Write(room[:min(left, chunk)]); err != nil {
				s.Reset()
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ask.Connect(b.Context(), give.JoinAddresses()[0]); err != nil {
		b.Fatal(err)
	}
	return func() float64 {
		began := time.Now()
		stream, err := ask.Open(b.Context(), give.Self(), protocol, run)
		if err != nil {
			b.Fatal(err)
		}
		defer stream.Close()
		_, err = stream.Write([]byte{0})
		moved, e := io.Copy(io.Discard, stream)
		if err != nil || e != nil || moved != int64(size) {
			b.Fatalf("moved %d bytes of %d: %v, %v", moved, size, err, e)
		}
		return time.Since(began).Seconds()
	}
}

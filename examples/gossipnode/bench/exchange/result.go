package exchange

import (
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// exchangeFigures has the samples of a measurement.
type exchangeFigures struct {
	ours, rawOurs, tcpBytes, streamBytes, naive samples

	exchangeRates, pingPongRates []float64

	peak       []uint64 // of this process and the other one
	blocked    []disturbance
	stages     []stageSeconds
	congestion string
}

// samples has one value for each round of one way: the time, the processor time of both processes, and the number of
// allocations in both.
type samples struct{ seconds, cpu, mallocs []float64 }

// Result is the output of bench exchange.
type Result struct {
	Parameters        int     `json:"parameters"`
	Codec             string  `json:"codec"`
	Lanes             int     `json:"lanes"`
	Seconds           float64 `json:"seconds"`
	RawSeconds        float64 `json:"raw_seconds"`
	RawTCPSeconds     float64 `json:"raw_tcp_seconds"`
	RawLibp2pSeconds  float64 `json:"raw_libp2p_seconds"`
	NaiveSeconds      float64 `json:"naive_seconds"`
	RatioToRawTCP     float64 `json:"ratio_to_raw_tcp"`
	RatioToRawLibp2p  float64 `json:"ratio_to_raw_libp2p"`
	CPUSeconds        float64 `json:"cpu_seconds"`
	Bytes             uint64  `json:"bytes"`
	AllocsPerSlice    float64 `json:"allocs_per_slice"`
	AllocsPerExchange float64 `json:"allocs_per_exchange"`

	// NaiveRatio is the time of the naive way divided by that of an exchange.
	NaiveRatio          float64 `json:"naive_ratio"`
	RawLibp2pCPUSeconds float64 `json:"raw_libp2p_cpu_seconds"`

	ExchangesPerSecond float64 `json:"exchanges_per_second"`
	PingPongPerSecond  float64 `json:"ping_pong_per_second"`

	// PeakBytes has the peak memory of the initiating process and of the other. PeakBudget is the memory of a peer's
	// vectors plus 64 MiB.
	PeakBytes  []uint64 `json:"peak_bytes"`
	PeakBudget uint64   `json:"peak_budget_bytes"`

	// BlockedP99 and BlockedLongest are times of the side that waited longer. A step that waits no longer than the
	// arithmetic of a slice counts as undisturbed.
	BlockedP99             float64       `json:"blocked_p99_seconds"`
	BlockedLongest         float64       `json:"blocked_longest_seconds"`
	Blocked                []disturbance `json:"blocked"`
	SliceArithmetic        float64       `json:"slice_arithmetic_seconds"`
	SliceArithmeticLongest float64       `json:"slice_arithmetic_longest_seconds"`

	Rounds            int    `json:"rounds"`
	Slices            int    `json:"slices"`
	SliceValues       int    `json:"slice_values"`
	Window            int    `json:"window"` // 0: 1 MiB at first, then as much as fills the link
	GOMAXPROCS        int    `json:"gomaxprocs"`
	CongestionControl string `json:"congestion_control"`
	Security          string `json:"security"`
	Muxer             string `json:"muxer"`
	CPU               string `json:"cpu"`
	Refused           int64  `json:"refused"`

	// Stages is filled by --stages.
	Stages []stageSeconds `json:"stages,omitempty"`
}

const (
	// peerVectors is the number of vectors of a peer with momentum: parameters, optimizer, gradient and snapshot.
	peerVectors = 4
	// peakSlack is the memory that a peer may use besides its vectors.
	peakSlack = 64 << 20
)

// netAllocations is the number of allocations of an exchange minus those of the reference in the same round, and that
// number for each slice.
func netAllocations(ours, reference []float64, slices int) (perExchange, perSlice float64) {
	net := make([]float64, len(ours))
	for i := range net {
		net[i] = ours[i] - reference[i]
	}
	return measure.Median(net), measure.Whole(net, float64(slices))
}

// String is a table of the figures and all settings.
func (r Result) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-44s %10s %9s\n", "medians of "+cli.Plural(uint64(r.Rounds), "round"), "ms", "exchange")
	row := func(what string, seconds, ratio float64) {
		fmt.Fprintf(&text, "%-44s %10.3f %9.2f\n", what, 1000*seconds, ratio)
	}
	row("exchange, "+r.Codec, r.Seconds, 1)
	if r.Codec != rawCodec {
		row("exchange, "+rawCodec, r.RawSeconds, r.RawSeconds/r.Seconds)
	}
	row("same bytes both ways, libp2p", r.RawLibp2pSeconds, 1/r.RatioToRawLibp2p)
	row("same bytes both ways, plain TCP", r.RawTCPSeconds, 1/r.RatioToRawTCP)
	row("naive: all there, averaged, all back", r.NaiveSeconds, r.NaiveRatio)
	fmt.Fprintf(&text, "\nThe exchange takes %.3f times as long as its bytes through libp2p, %.3f times as long as over TCP.\n", r.RatioToRawLibp2p, r.RatioToRawTCP)
	fmt.Fprintf(&text, "%s moved, both ways and headers included; %.3f s of processor time at both ends (bytes only: %.3f s).\n", cli.Size(r.Bytes), r.CPUSeconds, r.RawLibp2pCPUSeconds)
	fmt.Fprintf(&text, "Allocations beyond those of moving the bytes: %.0f an exchange of %s, %.0f a slice.\n", r.AllocsPerExchange, cli.Plural(uint64(r.Slices), "slice"), r.AllocsPerSlice)
	fmt.Fprintf(&text, "One right after the other: %.1f exchanges/s, %d refused in all; ping-pong of the same bytes over one stream: %.1f/s.\n", r.ExchangesPerSecond, r.Refused, r.PingPongPerSecond)
	for _, d := range r.Blocked {
		fmt.Fprintf(&text, "Trainer of the %s side, exchanges without a pause: waited %.3f ms at most in 99 %% of %s, %.3f ms in the longest, during %s.\n",
			d.Side, 1000*d.P99Seconds, cli.Plural(d.Steps, "step"), 1000*d.LongestSeconds, cli.Plural(d.Exchanges, "exchange"))
	}
	fmt.Fprintf(&text, "The arithmetic of a slice takes %.3f ms, at the longest %.3f ms.\n", 1000*r.SliceArithmetic, 1000*r.SliceArithmeticLongest)
	if len(r.Stages) > 0 {
		fmt.Fprintf(&text, "\n%-44s %10s %9s\n", "processor time of an exchange", "active ms", "passive")
	}
	for _, s := range r.Stages {
		fmt.Fprintf(&text, "%-44s %10.3f %9.3f\n", s.Stage, 1000*s.Active, 1000*s.Passive)
	}
	for i, peak := range r.PeakBytes {
		who := []string{"Initiating", "Other"}[min(i, 1)]
		fmt.Fprintf(&text, "%s process: peak memory %s of a budget of %s.\n", who, cli.Size(peak), cli.Size(r.PeakBudget))
	}
	fmt.Fprintf(&text, "\nCongestion control %s, security %s, muxer %s, slices of %s values, %s, GOMAXPROCS %d, %s.\n",
		r.CongestionControl, r.Security, r.Muxer, measure.Thousands(uint64(r.SliceValues)), cli.Plural(uint64(r.Lanes), "lane"), r.GOMAXPROCS, r.CPU)
	return text.String()
}

package metrics

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// busy is a peer of which every number is another one, so that none is told in another's place.
type busy struct{ still }

func (busy) Members() []control.Member {
	return []control.Member{{State: control.Training}, {State: control.Training}, {State: control.Over}, {State: 77}}
}

func newBusy() busy {
	var b busy
	b.stats = stats.Peer{
		Self: "self", Name: "name", Role: "active", Steps: 1, FlockSteps: 2, Target: 3, Progress: 0.5, Loss: 0.25, Rate: 0.125,
		Lost: 4, Duplicates: 5, Connections: 6, Quarantined: 7,
		Exchanges: stats.Exchanges{
			Initiated: 8, Served: 9, InDoubt: 10, Settled: 11, Lost: 12, Retransmitted: 13, Quarantines: 14, BitsPerParameter: 15 * 8, ConsensusDistance: 16, Every: 17,
			LongestHold: 18 * time.Second,
			Links:       []stats.Link{{Partner: "p", Codec: "int8", Rate: 19, Round: 20 * time.Second}, {Partner: "a", Rate: 21, Round: 22 * time.Second}},
			Biases:      []stats.Bias{{Partner: "p", Bias: 0.75}},
			Harms:       []stats.Harm{{Partner: "p", Harm: 1.5, Trust: 0.375}, {Partner: "a", Harm: -0.5, Trust: 1}},
		},
		State: stats.State{Joiners: 23, Sent: 24},
	}
	b.tallies = stats.Counters{
		Samples: 25, Refused: map[string]uint64{"busy": 26, "role": 27}, Declined: map[string]uint64{"busy": 28}, Failed: map[string]uint64{"stall": 29}, Dropped: map[string]uint64{"stall": 30},
		TransportRefused: map[string]uint64{"gave way": 31}, MembershipRefused: map[string]uint64{"forged": 32}, Traffic: map[string]stats.Traffic{"raw": {Sent: 33, Received: 34}},
		RowsHeld: stats.Rows{HandedOut: 40, Trained: 36, Lost: 3, Returned: 2, TakenBack: 37}, RowsTaken: stats.Rows{HandedOut: 39, Trained: 38, Lost: 1},
	}
	for _, steps := range []uint64{0, 1, 3, 4, 100} {
		b.tallies.Age.Add(steps)
	}
	for _, d := range []time.Duration{0, time.Microsecond, 5 * time.Microsecond, time.Second, time.Hour} {
		b.tallies.Durations.Add(d)
	}
	b.tallies.Rounds.Add(2 * time.Second)
	b.stats.Exchanges.Blocked.Add(3 * time.Second)
	return b
}

// TestEveryMetric shows what each is made of, and that its values are in the order of their labels.
func TestEveryMetric(t *testing.T) {
	text := string(Text(newBusy(), func() (time.Duration, bool) { return 35 * time.Second, true }))
	for _, want := range []string{
		`peer_info{name="name",peer="self",role="active",state="training"} 1`,
		"steps_total 1", "samples_total 25", "flock_steps 2", "flock_target_steps 3", "progress_ratio 0.5", "loss 0.25", "learning_rate 0.125",
		`rows_total{fate="handed_out",side="held"} 42`, `rows_total{fate="trained",side="held"} 36`, `rows_total{fate="lost",side="held"} 3`,
		`rows_total{fate="returned",side="held"} 2`, `rows_total{fate="handed_out",side="taken"} 39`, `rows_total{fate="trained",side="taken"} 38`, "rows_taken_back_total 37",
		`members{state="over"} 1`, `members{state="training"} 2`, `members{state="unknown"} 1`, `members{state="idle"} 0`,
		"members_lost_total 4", "twin_members 5", "connections 6", "quarantined_peers 7", "quarantines_total 14",
		`transport_refused_total{reason="gave way"} 31`, `membership_refused_total{reason="forged"} 32`,
		`exchanges_total{outcome="completed",reason="none",side="initiated"} 8`, `exchanges_total{outcome="completed",reason="none",side="served"} 9`,
		`exchanges_total{outcome="failed",reason="stall",side="initiated"} 29`, `exchanges_total{outcome="failed",reason="stall",side="served"} 30`,
		`exchanges_total{outcome="refused",reason="busy",side="initiated"} 26`, `exchanges_total{outcome="refused",reason="role",side="initiated"} 27`,
		`exchanges_total{outcome="refused",reason="busy",side="served"} 28`,
		`exchange_bytes_total{codec="raw",direction="sent"} 33`, `exchange_bytes_total{codec="raw",direction="received"} 34`,
		"exchange_parameter_bytes 15", "consensus_distance 16", "exchange_interval_steps 17", "blocks_resent_total 13",
		`exchange_staleness_steps_bucket{le="0"} 1`, `exchange_staleness_steps_bucket{le="3"} 3`, `exchange_staleness_steps_bucket{le="15"} 4`,
		`exchange_staleness_steps_bucket{le="+Inf"} 5`, "exchange_staleness_steps_sum 108", "exchange_staleness_steps_count 5",
		`exchange_duration_seconds_bucket{le="4.096e-06"} 2`, `exchange_duration_seconds_bucket{le="1.6384e-05"} 3`, `exchange_duration_seconds_bucket{le="68.719476736"} 4`,
		`exchange_duration_seconds_bucket{le="+Inf"} 5`, "exchange_duration_seconds_count 5", "partner_round_trip_seconds_sum 2", "slice_wait_seconds_sum 3",
		"trainer_hold_longest_seconds 18", "in_doubt_slices 10", "settled_slices_total 11", "lost_slices_total 12",
		`link_bytes_per_second{codec="",partner="a"} 21`, `link_bytes_per_second{codec="int8",partner="p"} 19`,
		`link_round_trip_seconds{partner="a"} 22`, `link_round_trip_seconds{partner="p"} 20`, `partner_pull_ratio{partner="p"} 0.75`,
		`partner_harm{partner="a"} -0.5`, `partner_harm{partner="p"} 1.5`, `partner_trust{partner="a"} 1`, `partner_trust{partner="p"} 0.375`,
		"newcomers 23", "given_slices_total 24", "checkpoint_age_seconds 35",
	} {
		if !strings.Contains(text, "\n"+prefix+want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var seen []string
	for line := range strings.Lines(text) {
		if name := strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]; name != "#" && !strings.Contains(line, "_bucket") {
			if n := len(seen); n > 0 && strings.HasPrefix(seen[n-1], name+"{") && seen[n-1] >= line {
				t.Errorf("%q comes before %q", seen[n-1], line)
			}
			seen = append(seen, line)
		}
	}
}

// TestNamesAreOfPrometheus: what counts up ends with _total and nothing else does, labels are
// words, and each metric is told of once, in a sentence.
func TestNamesAreOfPrometheus(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	m := &moment{Peer: newBusy().stats, counters: newBusy().tallies, members: newBusy().Members(), checkpointAge: func() (time.Duration, bool) { return 0, true }}
	var names []string
	for _, f := range families {
		e := &emitter{family: f}
		if f.emit(e, m); e.kind == "" || len(e.lines) == 0 {
			t.Errorf("%s has no value", f.name)
		}
		if strings.HasSuffix(f.name, "_total") != (e.kind == "counter") {
			t.Errorf("%s is a %s", f.name, e.kind)
		}
		for _, w := range append([]string{f.name}, f.labels...) {
			if !word.MatchString(w) {
				t.Errorf("%s: %q", f.name, w)
			}
		}
		if !strings.HasSuffix(f.help, ".") || slices.Contains(names, f.name) {
			t.Errorf("%s: %q, told of before: %v", f.name, f.help, slices.Contains(names, f.name))
		}
		names = append(names, f.name)
	}
}

// TestNumbersAreWritten as Prometheus reads them.
func TestNumbersAreWritten(t *testing.T) {
	for want, v := range map[string]float64{"0": 0, "1e+21": 1e21, "0.1": 0.1, "+Inf": math.Inf(1), "-Inf": math.Inf(-1), "NaN": math.NaN(), "1.099511627776e+12": 1 << 40} {
		if got := number(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

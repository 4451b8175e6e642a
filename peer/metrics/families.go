package metrics

import (
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// moment is what a peer counts, as a scrape finds it.
type moment struct {
	stats.Peer
	counters      stats.Counters
	members       []control.Member
	state         control.State
	checkpointAge func() (time.Duration, bool)
}

// family is a metric: its name, whose unit follows the conventions of Prometheus, what it
// says, its labels, and how its values are found. docs/OPERATING.md says what to make of each.
type family struct {
	name, help string
	labels     []string
	emit       func(*emitter, *moment)
}

// gauge and counter are metrics without labels.
func gauge(name, help string, value func(*moment) float64) family {
	return family{name, help, nil, func(e *emitter, m *moment) { e.gauge(value(m)) }}
}

func counter(name, help string, value func(*moment) uint64) family {
	return family{name, help, nil, func(e *emitter, m *moment) { e.counter(value(m)) }}
}

// byReason is a counter for each reason.
func byReason(name, help string, counts func(*moment) map[string]uint64) family {
	return family{name, help, []string{"reason"}, func(e *emitter, m *moment) {
		for reason, n := range counts(m) {
			e.counter(n, reason)
		}
	}}
}

// families are all metrics of a peer.
var families = []family{
	{"peer_info", "Who this peer is, its role in the overlay and what it is about; always 1.", []string{"peer", "name", "role", "state"},
		func(e *emitter, m *moment) { e.gauge(1, string(m.Self), m.Name, m.Role, m.state.String()) }},
	counter("steps_total", "Gradient steps of this peer.", func(m *moment) uint64 { return m.Steps }),
	counter("samples_total", "Samples that gradients of this peer were computed from.", func(m *moment) uint64 { return m.counters.Samples }),
	gauge("flock_steps", "Estimated gradient steps of all peers together.", func(m *moment) float64 { return float64(m.FlockSteps) }),
	gauge("flock_target_steps", "Gradient steps that all peers together have to do; 0 if the run has no end.", func(m *moment) float64 { return float64(m.Target) }),
	gauge("progress_ratio", "Share of the flock's work that is done, 0 to 1.", func(m *moment) float64 { return m.Progress }),
	gauge("loss", "Running mean of the training loss; NaN before the first step.", func(m *moment) float64 { return m.Loss }),
	gauge("learning_rate", "Learning rate of the last step.", func(m *moment) float64 { return m.Rate }),

	{"members", "Members of the run by what they are about, this one included.", []string{"state"}, members},
	counter("members_lost_total", "Members that have gone without leaving.", func(m *moment) uint64 { return uint64(m.Lost) }),
	gauge("twin_members", "Members that begin one life after another: two processes have one key.", func(m *moment) float64 { return float64(m.Duplicates) }),
	gauge("connections", "Open connections.", func(m *moment) float64 { return float64(m.Connections) }),
	gauge("quarantined_peers", "Peers that are kept away because they broke the rules or did grave harm.", func(m *moment) float64 { return float64(m.Quarantined) }),
	counter("quarantines_total", "Times that a partner was found to break the rules or to do grave harm.", func(m *moment) uint64 { return m.Exchanges.Quarantines }),
	byReason("transport_refused_total", "Streams and datagrams that were refused, and connections that gave way to others, by why.",
		func(m *moment) map[string]uint64 { return m.counters.TransportRefused }),
	byReason("membership_refused_total", "Messages about members that were not heard, by why.",
		func(m *moment) map[string]uint64 { return m.counters.MembershipRefused }),

	{"exchanges_total", "Exchanges by who began them, how they ended and, if not well, why.", []string{"side", "outcome", "reason"}, exchanges},
	{"exchange_bytes_total", "Bytes that exchanges moved, headers included, by the coarsest codec of the exchange.", []string{"direction", "codec"},
		func(e *emitter, m *moment) {
			for codec, moved := range m.counters.Traffic {
				e.counter(moved.Sent, "sent", codec)
				e.counter(moved.Received, "received", codec)
			}
		}},
	gauge("exchange_parameter_bytes", "Mean bytes that a parameter takes in an exchange, of both directions, headers included.",
		func(m *moment) float64 { return m.Exchanges.BitsPerParameter / 8 }),
	gauge("consensus_distance", "Estimated distance of a model from the mean of the flock.", func(m *moment) float64 { return m.Exchanges.ConsensusDistance }),
	gauge("exchange_interval_steps", "Steps between two exchanges that this peer begins.", func(m *moment) float64 { return float64(m.Exchanges.Every) }),
	counter("blocks_resent_total", "Blocks of lattice codes that failed and were sent again.", func(m *moment) uint64 { return m.Exchanges.Retransmitted }),

	{"exchange_staleness_steps", "Steps that the trainer took while an exchange was under way.", nil, func(e *emitter, m *moment) { e.ages(m.counters.Age) }},
	{"exchange_duration_seconds", "Time of completed exchanges, at either side.", nil, func(e *emitter, m *moment) { e.times(m.counters.Durations) }},
	{"partner_round_trip_seconds", "Time from a proposal to its answer.", nil, func(e *emitter, m *moment) { e.times(m.counters.Rounds) }},
	{"slice_wait_seconds", "Time, step by step, for which exchanges kept the trainer waiting for a slice.", nil, func(e *emitter, m *moment) { e.times(m.Exchanges.Blocked) }},
	gauge("trainer_hold_longest_seconds", "Longest time for which the trainer was kept outside its gradient function, or the process stood still.",
		func(m *moment) float64 { return m.Exchanges.LongestHold.Seconds() }),

	gauge("in_doubt_slices", "Slices of broken exchanges whose outcome the partner has not told yet.", func(m *moment) float64 { return float64(m.Exchanges.InDoubt) }),
	counter("settled_slices_total", "Slices of broken exchanges that were cleared up with the partner.", func(m *moment) uint64 { return m.Exchanges.Settled }),
	counter("lost_slices_total", "Slices of broken exchanges that were given up.", func(m *moment) uint64 { return m.Exchanges.Lost }),

	{"link_bytes_per_second", "What the link to a partner carries; of those used last.", []string{"partner", "codec"}, func(e *emitter, m *moment) {
		for _, l := range m.Exchanges.Links {
			e.gauge(l.Rate, string(l.Partner), l.Codec)
		}
	}},
	{"link_round_trip_seconds", "Last time from a question to a partner to its answer; of those used last.", []string{"partner"}, func(e *emitter, m *moment) {
		for _, l := range m.Exchanges.Links {
			e.gauge(l.Round.Seconds(), string(l.Partner))
		}
	}},
	{"partner_pull_ratio", "How one-sided a partner's differences are, 0 to 1; of those with the largest.", []string{"partner"}, func(e *emitter, m *moment) {
		for _, p := range m.Exchanges.Biases {
			e.gauge(p.Bias, string(p.Partner))
		}
	}},
	{"partner_harm", "By how much an exchange with a partner raises this peer's loss, in units of what one with others changes it by; of those trusted least.", []string{"partner"},
		func(e *emitter, m *moment) {
			for _, p := range m.Exchanges.Harms {
				e.gauge(p.Harm, string(p.Partner))
			}
		}},
	{"partner_trust", "Share of the clipping bound that a partner has, 1 unless its exchanges do harm; of those trusted least.", []string{"partner"}, func(e *emitter, m *moment) {
		for _, p := range m.Exchanges.Harms {
			e.gauge(p.Trust, string(p.Partner))
		}
	}},

	{"rows_total", "Rows that travelled, by whether this peer holds them or takes them, and by what became of them.", []string{"side", "fate"},
		func(e *emitter, m *moment) {
			for side, n := range map[string]stats.Rows{"held": m.counters.RowsHeld, "taken": m.counters.RowsTaken} {
				e.counter(n.HandedOut+n.Returned, side, "handed_out")
				e.counter(n.Trained, side, "trained")
				e.counter(n.Lost, side, "lost")
				e.counter(n.Returned, side, "returned")
			}
		}},
	counter("rows_taken_back_total", "Rows kept for members that did not ask for them, which others got.", func(m *moment) uint64 { return m.counters.RowsHeld.TakenBack }),

	gauge("newcomers", "Copies of the model that this peer is giving to newcomers.", func(m *moment) float64 { return float64(m.State.Joiners) }),
	counter("given_slices_total", "Slices of the model that this peer has given to newcomers.", func(m *moment) uint64 { return m.State.Sent }),
	{"checkpoint_age_seconds", "Time since the last checkpoint was written, or since the start before the first; absent if none are kept.", nil,
		func(e *emitter, m *moment) {
			if age, ok := m.checkpointAge(); ok {
				e.gauge(age.Seconds())
			}
		}},
}

func members(e *emitter, m *moment) {
	var states [control.Idle + 2]int // the last is of states that this release does not know
	for _, one := range m.members {
		states[min(int(one.State), len(states)-1)]++
	}
	for state, n := range states {
		e.gauge(float64(n), control.State(state).String())
	}
}

func exchanges(e *emitter, m *moment) {
	e.counter(m.Exchanges.Initiated, "initiated", "completed", "none")
	e.counter(m.Exchanges.Served, "served", "completed", "none")
	for _, ended := range []struct {
		side, outcome string
		reasons       map[string]uint64
	}{
		{"initiated", "refused", m.counters.Refused}, {"served", "refused", m.counters.Declined},
		{"initiated", "failed", m.counters.Failed}, {"served", "failed", m.counters.Dropped},
	} {
		for reason, n := range ended.reasons {
			e.counter(n, ended.side, ended.outcome, reason)
		}
	}
}

package metrics

import "github.com/prometheus/client_golang/prometheus"

// describe makes the description of a metric, whose name and unit follow the
// conventions of Prometheus. docs/OPERATING.md says what to make of each.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("murmuration_"+name, help, labels, nil)
}

// descriptions are those of all metrics of a peer.
type descriptions struct {
	info, steps, samples, flockSteps, flockTarget, progress, loss, rate           *prometheus.Desc
	members, lost, twins, connections, quarantined, quarantines, refused, unheard *prometheus.Desc
	exchanges, bytes, bits, distance, every, resent                               *prometheus.Desc
	staleness, took, round, wait, hold                                            *prometheus.Desc
	doubt, settled, slicesLost                                                    *prometheus.Desc
	partnerRate, partnerRound, pull                                               *prometheus.Desc
	newcomers, given, checkpoint                                                  *prometheus.Desc
}

func newDescriptions() descriptions {
	return descriptions{
		info:        describe("peer_info", "Who this peer is, its role in the overlay and what it is about; always 1.", "peer", "role", "state"),
		steps:       describe("steps_total", "Gradient steps of this peer."),
		samples:     describe("samples_total", "Samples that gradients of this peer were computed from."),
		flockSteps:  describe("flock_steps", "Estimated gradient steps of all peers together."),
		flockTarget: describe("flock_target_steps", "Gradient steps that all peers together have to do; 0 if the run has no end."),
		progress:    describe("progress_ratio", "Share of the flock's work that is done, 0 to 1."),
		loss:        describe("loss", "Running mean of the training loss; NaN before the first step."),
		rate:        describe("learning_rate", "Learning rate of the last step."),

		members:     describe("members", "Members of the run by what they are about, this one included.", "state"),
		lost:        describe("members_lost_total", "Members that have gone without leaving."),
		twins:       describe("twin_members", "Members that begin one life after another: two processes have one key."),
		connections: describe("connections", "Open connections."),
		quarantined: describe("quarantined_peers", "Peers that are kept away because they broke the rules."),
		quarantines: describe("quarantines_total", "Times that a partner was found to break the rules."),
		refused:     describe("transport_refused_total", "Streams and datagrams that were refused, and connections that gave way to others, by why.", "reason"),
		unheard:     describe("membership_refused_total", "Messages about members that were not heard, by why.", "reason"),

		exchanges: describe("exchanges_total", "Exchanges by who began them, how they ended and, if not well, why.", "side", "outcome", "reason"),
		bytes:     describe("exchange_bytes_total", "Bytes that exchanges moved, headers included, by the coarsest codec of the exchange.", "direction", "codec"),
		bits:      describe("exchange_parameter_bytes", "Mean bytes that a parameter takes in an exchange, of both directions, headers included."),
		distance:  describe("consensus_distance", "Estimated distance of a model from the mean of the flock."),
		every:     describe("exchange_interval_steps", "Steps between two exchanges that this peer begins."),
		resent:    describe("blocks_resent_total", "Blocks of lattice codes that failed and were sent again."),

		staleness: describe("exchange_staleness_steps", "Steps that the trainer took while an exchange was under way."),
		took:      describe("exchange_duration_seconds", "Time of completed exchanges, at either side."),
		round:     describe("partner_round_trip_seconds", "Time from a proposal to its answer."),
		wait:      describe("slice_wait_seconds", "Time, step by step, for which exchanges kept the trainer waiting for a slice."),
		hold:      describe("trainer_hold_longest_seconds", "Longest time for which the trainer was kept outside its gradient function, or the process stood still."),

		doubt:      describe("in_doubt_slices", "Slices of broken exchanges whose outcome the partner has not told yet."),
		settled:    describe("settled_slices_total", "Slices of broken exchanges that were cleared up with the partner."),
		slicesLost: describe("lost_slices_total", "Slices of broken exchanges that were given up."),

		partnerRate:  describe("link_bytes_per_second", "What the link to a partner carries; of those used last.", "partner", "codec"),
		partnerRound: describe("link_round_trip_seconds", "Last time from a question to a partner to its answer; of those used last.", "partner"),
		pull:         describe("partner_pull_ratio", "How one-sided a partner's differences are, 0 to 1; of those with the largest.", "partner"),

		newcomers:  describe("newcomers", "Copies of the model that this peer is giving to newcomers."),
		given:      describe("given_slices_total", "Slices of the model that this peer has given to newcomers."),
		checkpoint: describe("checkpoint_age_seconds", "Time since the last checkpoint was written, or since the start before the first; absent if none are kept."),
	}
}

// all are the descriptions, for who wants to know the metrics before they have values.
func (d descriptions) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.info, d.steps, d.samples, d.flockSteps, d.flockTarget, d.progress, d.loss, d.rate,
		d.members, d.lost, d.twins, d.connections, d.quarantined, d.quarantines, d.refused, d.unheard,
		d.exchanges, d.bytes, d.bits, d.distance, d.every, d.resent,
		d.staleness, d.took, d.round, d.wait, d.hold,
		d.doubt, d.settled, d.slicesLost, d.partnerRate, d.partnerRound, d.pull,
		d.newcomers, d.given, d.checkpoint,
	}
}

// Package result has the results that run, local and simulate print, as JSON with fixed names
// and in words.
package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Result is printed with --json: the result of one peer, or of all peers of a local run.
// The names of its fields are a contract, which the design lists.
type Result struct {
	// Name is the name of the peer; in local, --name or the name of the machine.
	Name  string `json:"name,omitempty"`
	Peers int    `json:"peers"`
	// Joined tells that the peer has trained with another; in local, that all have.
	Joined   bool   `json:"joined"`
	Strategy string `json:"strategy"`
	Codec    string `json:"codec"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	// Steps is the number of gradient steps, including earlier steps in the checkpoint
	// that was resumed; in local, of all peers together.
	Steps uint64 `json:"steps"`
	// Seconds is the time from the first step until the run's work was done.
	Seconds      float64  `json:"seconds"`
	TestAccuracy Accuracy `json:"test_accuracy"`
	// AUC is the area under the ROC curve on the held-out rows of a table: for class 1 of two
	// classes, and the mean over all classes if there are more.
	AUC *Accuracy `json:"auc,omitempty"`
	TextFigures
	// TestLoss is the loss on the held-out data, Loss a running mean of the training
	// losses of the last steps.
	TestLoss cli.Number `json:"test_loss"`
	Loss     cli.Number `json:"loss"`
	// RanAway tells that up to the end the training loss was far above its start for long;
	// in local, that this is so for at least one peer.
	RanAway bool `json:"loss_ran_away,omitempty"`
	// ConsensusDistance is the root mean square distance of the final models from their mean.
	// In local, it is over the ConsensusPeers peers that finished. For one peer, it is 0 after
	// a final merge. It is unknown (NaN, null in JSON) if the models were not compared
	// after the last exchange.
	ConsensusDistance cli.Number `json:"consensus_distance"`
	ConsensusPeers    int        `json:"consensus_peers,omitempty"`
	// Exchanges counts completed exchanges; for one peer, including those that it served.
	// Proposals that a busy partner refused count as Refused, and not as Failed.
	Exchanges      uint64  `json:"exchanges"`
	Refused        uint64  `json:"refused"`
	Failed         uint64  `json:"failed"`
	InDoubt        uint64  `json:"in_doubt"`
	PeersLost      int     `json:"peers_lost"`
	JoinSeconds    float64 `json:"join_seconds"`
	ConnectionsMax int     `json:"connections_max"`
	BytesSent      uint64  `json:"bytes_sent"`
	// Travelled counts rows that holders gave to peers that train; nil without holders.
	*Travelled
	BitsPerParameter cli.Number `json:"bits_per_parameter"`
	// ResumedStep is the number of steps in the checkpoint that was resumed, 0 without
	// one; in local, of all peers together.
	ResumedStep uint64 `json:"resumed_step"`

	// SamplesPerSecond is the number of pictures learned from, divided by Seconds.
	// Every is the last number of steps between two exchanges. FirstExchangeSeconds
	// is the time from the peer's start to the end of its first exchange. LongestHold
	// is the longest time, in seconds, in which the trainer had to wait, or the
	// process stood still.
	SamplesPerSecond     float64 `json:"samples_per_second"`
	Every                int     `json:"every"`
	FirstExchangeSeconds float64 `json:"first_exchange_seconds"`
	LongestHold          float64 `json:"longest_hold"`
	// Links are the links for which --codec auto chose a codec, as measured by the peer
	// that initiates.
	Links []LinkResult `json:"links,omitempty"`
	// PeakMemory is the largest resident memory of a process, in bytes; with --in-process
	// it is that of all peers. It is left out if the system does not report it.
	// Partners is the number of peers with which a peer completed exchanges.
	PeakMemory Spread `json:"peak_memory,omitzero"`
	Partners   Spread `json:"partners"`
	FinalResult
	Ending
	// GlobalBatch is the number of pictures of all peers in a step; 0 if each has its own number.
	GlobalBatch int `json:"global_batch,omitempty"`
	// Cross is the table of --cross-evaluate.
	Cross *Cross `json:"cross_evaluation,omitempty"`
	// Tasks is what became of the tasks of --tasks; nil without.
	*Tasks
	// Followed is what became of the data that arrived; nil without --follow.
	*Followed
	// Peer and Role are set in the result of one peer only.
	Peer string `json:"peer,omitempty"`
	Role string `json:"role,omitempty"`
	// Idle are the numbers of the peers of a local run that finished without a step.
	Idle []int `json:"-"`
}

// Accuracy is the share, 0 to 1, of held-out pictures that are classified correctly, over the peers.
type Accuracy struct {
	Mean cli.Number `json:"mean"`
	Min  cli.Number `json:"min"`
	Max  cli.Number `json:"max"`
}

// AccuracyOf is the spread of a figure over peers.
func AccuracyOf(values ...float64) Accuracy {
	of := SpreadOf(values...)
	return Accuracy{Mean: cli.Number(of.Mean), Min: cli.Number(of.Min), Max: cli.Number(of.Max)}
}

// Holder is the role of a member that holds rows and does not train.
const Holder = "holder"

// Share is what one peer contributes to the result of a local run.
type Share struct {
	Result Result `json:"result"`
	// Initiated counts the exchanges that this peer began. The sum over all peers
	// counts each exchange once.
	Initiated uint64 `json:"initiated"`
	// Taken counts, by holder, the rows that this peer took. It is used for holders that were lost before their own report.
	Taken map[string]Travelled `json:"taken,omitempty"`
	// Found is false if the peer was to join members and found none: this counts as
	// an error.
	Found bool `json:"-"`
	// Sketch is the sketch of the peer's model, from which distances between models are computed.
	Sketch Sketch `json:"sketch,omitempty"`
	// Unsaved is the error because of which the last checkpoint could not be saved.
	Unsaved error `json:"-"`
}

// Travelled counts rows from holders, each time that a row is sent. At the end, each row handed out is trained or lost.
type Travelled struct {
	// Holders is the number of members that held rows, in local.
	Holders        int    `json:"holders,omitempty"`
	HandedOut      uint64 `json:"handed_out"`
	TrainedSamples uint64 `json:"trained_samples"`
	LostSamples    uint64 `json:"lost_samples"`
}

// Add adds counts.
func (t *Travelled) Add(more Travelled) {
	t.HandedOut, t.TrainedSamples, t.LostSamples = t.HandedOut+more.HandedOut, t.TrainedSamples+more.TrainedSamples, t.LostSamples+more.LostSamples
}

// sentence says it in words; nothing for nil, where no rows travelled.
func (t *Travelled) sentence() string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("Rows handed out: %d, of which %d were trained on and %d lost.\n", t.HandedOut, t.TrainedSamples, t.LostSamples)
}

// String describes a result in words.
func (r Result) String() string {
	if r.Role == Holder {
		return fmt.Sprintf("Held %s for others, and sent %s.\n", r.Dataset, cli.Size(r.BytesSent)) + r.Travelled.sentence()
	}
	a := r.TestAccuracy
	text := fmt.Sprintf("%s with %s", cli.Percent(a.Mean), r.Model)
	if r.Peers > 1 && a.Min != a.Max {
		text += fmt.Sprintf(" (%s to %s)", cli.Percent(a.Min), cli.Percent(a.Max))
	}
	if math.IsNaN(float64(a.Mean)) {
		text = "known to the peers with data"
	}
	text = fmt.Sprintf("Held-out accuracy on %s: %s, after %s in %.1f s of training.\n", r.Dataset, text, cli.Plural(r.Steps, "step"), r.Seconds)
	if b := r.BitsPerByte; b != nil {
		text += fmt.Sprintf("%s bits per byte of text held out (%s to %s), after %d bytes.\n", cli.Figure(b.Mean), cli.Figure(b.Min), cli.Figure(b.Max), r.Tokens)
	}
	if a := r.AUC; a != nil {
		text += fmt.Sprintf("Area under the curve: %s (%s to %s).\n", cli.Figure(a.Mean), cli.Figure(a.Min), cli.Figure(a.Max))
	}
	sent := cli.Size(r.BytesSent) + " sent as " + r.Codec
	if r.Travelled != nil {
		sent = "as " + r.Codec + ", " + cli.Size(r.BytesSent) + " sent with the rows"
	}
	text += fmt.Sprintf("%s, %s: %s, %d failed, %s", cli.Plural(uint64(r.Peers), "peer"), r.Strategy, cli.Plural(r.Exchanges, "exchange"), r.Failed, sent)
	if r.Refused > 0 {
		text += fmt.Sprintf("; %s refused, as busy partners do", cli.Plural(r.Refused, "proposal"))
	}
	text += ".\n" + r.Ending.sentence() + r.Tasks.sentence() + r.Followed.sentence() + r.Travelled.sentence() + r.apart() + r.footprint() + linkSummary(r.Links) + r.FinalResult.Summary() + r.Cross.String()
	if r.PeersLost > 0 {
		text += fmt.Sprintf("%d lost on the way.\n", r.PeersLost)
	}
	if r.RanAway {
		text += fmt.Sprintf("THE LOSS RAN AWAY, to %.3g: this model is of no use. Begin anew with a tenth of --lr, or with --clip 1 or --optimizer adamw.\n", float64(r.Loss))
	}
	for _, number := range r.Idle {
		text += fmt.Sprintf("Peer %d took no step: the others had done the work before it began.\n", number)
	}
	return text
}

// apart describes the distance between the final models, and how it is known.
func (r Result) apart() string {
	switch d := float64(r.ConsensusDistance); {
	case r.ConsensusPeers > 1 && d == 0:
		return fmt.Sprintf("The models of the %d peers that finished are the same.\n", r.ConsensusPeers)
	case r.ConsensusPeers > 1 && !math.IsNaN(d):
		return fmt.Sprintf("Models %.3g apart, measured at the end over the %d peers that finished.\n", d, r.ConsensusPeers)
	case r.Peer != "" && d == 0:
		return "The models of all that took part in the final merge are the same.\n"
	case r.Exchanges == 0:
		return ""
	case !math.IsNaN(d): // from simulate, which sees all models
		return fmt.Sprintf("Models %.3g apart at the end.\n", d)
	case r.Peer != "":
		return "How far apart the models have ended is unknown: the others' last exchanges may follow this peer's (--final merge makes them the same).\n"
	}
	return "How far apart the models have ended is unknown: fewer than two can be compared.\n"
}

// Spread is the mean, the least and the largest value of a figure over several peers.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// SpreadOf is the spread of figures, all 0 if there are none.
func SpreadOf(values ...float64) (all Spread) {
	if len(values) == 0 {
		return all
	}
	for _, v := range values {
		all.Mean += v / float64(len(values))
	}
	all.Min, all.Max = slices.Min(values), slices.Max(values)
	all.Mean = min(max(all.Mean, all.Min), all.Max) // rounding may put the mean of equal values outside
	return all
}

// footprint describes memory and connections of the run, in words.
func (r Result) footprint() string {
	if r.PeakMemory == (Spread{}) {
		return ""
	}
	text := fmt.Sprintf("Memory of a process: %s at its peak", cli.Size(uint64(r.PeakMemory.Mean)))
	if r.PeakMemory.Max != r.PeakMemory.Min {
		text += fmt.Sprintf(" (at most %s)", cli.Size(uint64(r.PeakMemory.Max)))
	}
	return text + fmt.Sprintf("; at most %s.\n", cli.Plural(uint64(r.ConnectionsMax), "connection"))
}

// LinkResult is a peer's measurement of the link to a partner, and the codec chosen
// by it.
type LinkResult struct {
	Peer             string  `json:"peer"`
	Partner          string  `json:"partner"`
	Codec            string  `json:"codec"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	RoundTripSeconds float64 `json:"round_trip_seconds"`
	Exchanges        uint64  `json:"exchanges"`
}

// maxShownLinks bounds the lines about links in a summary.
const maxShownLinks = 32

// linkSummary describes in words the codec that was chosen for each link.
func linkSummary(links []LinkResult) string {
	var text strings.Builder
	for i, l := range links {
		if i == maxShownLinks {
			fmt.Fprintf(&text, "... and %d more links.\n", len(links)-i)
			break
		}
		trip := time.Duration(l.RoundTripSeconds * float64(time.Second)).Round(10 * time.Microsecond)
		fmt.Fprintf(&text, "%s to %s: %s, for %s/s and a round trip of %s in %s.\n",
			transport.PeerID(l.Peer).Short(), transport.PeerID(l.Partner).Short(), l.Codec, cli.Size(uint64(l.BytesPerSecond)), trip, cli.Plural(l.Exchanges, "exchange"))
	}
	return text.String()
}

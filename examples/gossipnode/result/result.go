// Package result is what run, local and simulate print: a contract of names, and the words
// beside it.
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

// Result is what --json prints: of one peer, or of all peers of a local run. The
// contract for the names is in the design.
type Result struct {
	// Name is what the peer is called, or the run on one machine.
	Name  string `json:"name,omitempty"`
	Peers int    `json:"peers"`
	// Joined tells that the peer has taken part with another; in local, that all have.
	Joined   bool   `json:"joined"`
	Strategy string `json:"strategy"`
	Codec    string `json:"codec"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	// Steps is the number of gradient steps, those of earlier lives that a checkpoint
	// has kept included; of all peers together in local.
	Steps uint64 `json:"steps"`
	// Seconds is the time from the first step until the run's work was done.
	Seconds      float64  `json:"seconds"`
	TestAccuracy Accuracy `json:"test_accuracy"`
	// AUC is the area under the curve on the held-out rows of a table, of class 1 of two, and
	// the mean over the classes of more.
	AUC *Accuracy `json:"auc,omitempty"`
	TextFigures
	// TestLoss is that on the held-out data, Loss a running mean of the last steps
	// on the training data.
	TestLoss cli.Number `json:"test_loss"`
	Loss     cli.Number `json:"loss"`
	// RanAway tells that the training loss was far above its start for long, up to the end;
	// in local, that of a peer was.
	RanAway bool `json:"loss_ran_away,omitempty"`
	// ConsensusDistance is the root mean square distance from their mean of the models that
	// peers have ended with: of those of a local run that finished, ConsensusPeers of them;
	// 0 of one peer that has the model of the final merge. It is unknown where nothing was
	// measured after the last exchange.
	ConsensusDistance cli.Number `json:"consensus_distance"`
	ConsensusPeers    int        `json:"consensus_peers,omitempty"`
	// Exchanges are those completed; of one peer those that it served too. Proposals that
	// were refused, as busy partners do, are none, and no failures.
	Exchanges      uint64  `json:"exchanges"`
	Refused        uint64  `json:"refused"`
	Failed         uint64  `json:"failed"`
	InDoubt        uint64  `json:"in_doubt"`
	PeersLost      int     `json:"peers_lost"`
	JoinSeconds    float64 `json:"join_seconds"`
	ConnectionsMax int     `json:"connections_max"`
	BytesSent      uint64  `json:"bytes_sent"`
	// Travelled tells of rows that holders gave to those that train; nil where none did.
	*Travelled
	BitsPerParameter cli.Number `json:"bits_per_parameter"`
	// ResumedStep is how many of the steps are behind the checkpoint that was taken up,
	// 0 without one; of all peers together in local.
	ResumedStep uint64 `json:"resumed_step"`

	// SamplesPerSecond is the number of pictures learned from, by Seconds; Every
	// the last number of steps between two exchanges; FirstExchangeSeconds the
	// time from the peer's start to the end of its first exchange; LongestHold the
	// longest time in seconds for which the trainer was kept from its work, or the
	// process stood still.
	SamplesPerSecond     float64 `json:"samples_per_second"`
	Every                int     `json:"every"`
	FirstExchangeSeconds float64 `json:"first_exchange_seconds"`
	LongestHold          float64 `json:"longest_hold"`
	// Links are those on whose measures a codec was chosen, with --codec auto, as seen
	// by the peers that initiate.
	Links []LinkResult `json:"links,omitempty"`
	// PeakMemory is the most memory that a process had resident, in bytes, left out
	// where the system does not tell; with --in-process it is that of all peers.
	// Partners is the number of peers that a peer completed exchanges with.
	PeakMemory Spread `json:"peak_memory,omitzero"`
	Partners   Spread `json:"partners"`
	FinalResult
	// Peer and Role are there for one peer only.
	Peer string `json:"peer,omitempty"`
	Role string `json:"role,omitempty"`
	// Idle are the peers of a local run that finished without a step of their own.
	Idle []int `json:"-"`
}

// Accuracy is the share of held-out pictures classified rightly, over the peers.
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
	// Initiated counts the exchanges that this peer began, so that those of all
	// peers can be added without counting any twice.
	Initiated uint64 `json:"initiated"`
	// Taken is what became of the rows of each holder at a member that trains: what counts of a holder that does not tell itself.
	Taken map[string]Travelled `json:"taken,omitempty"`
	// Found is false where members were to be joined, and none was: no end to be
	// content with.
	Found bool `json:"-"`
	// Sketch is of the peer's model, so that the distance of several can be told.
	Sketch Sketch `json:"sketch,omitempty"`
	// Unsaved is why the last checkpoint could not be saved.
	Unsaved error `json:"-"`
}

// Travelled counts rows that travel, each every time: what was handed out is trained or lost, once nothing is under way.
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

// summary tells of rows that travelled, in words.
func (r Result) summary() string {
	if r.Travelled == nil {
		return ""
	}
	return fmt.Sprintf("Rows handed out: %d, of which %d were trained and %d lost.\n", r.HandedOut, r.TrainedSamples, r.LostSamples)
}

// String tells a result in words.
func (r Result) String() string {
	if r.Role == Holder {
		return fmt.Sprintf("Held %s for others, and sent %s.\n", r.Dataset, cli.Size(r.BytesSent)) + r.summary()
	}
	a := r.TestAccuracy
	text := fmt.Sprintf("%s with %s", cli.Percent(a.Mean), r.Model)
	if r.Peers > 1 && a.Min != a.Max {
		text += fmt.Sprintf(" (%s to %s)", cli.Percent(a.Min), cli.Percent(a.Max))
	}
	text = fmt.Sprintf("Held-out accuracy on %s: %s, after %s in %.1f s of training.\n", r.Dataset, text, cli.Plural(r.Steps, "step"), r.Seconds)
	if b := r.BitsPerByte; b != nil {
		text += fmt.Sprintf("%s bits per byte of text held out (%s to %s), after %d bytes.\n", cli.Figure(b.Mean), cli.Figure(b.Min), cli.Figure(b.Max), r.Tokens)
	}
	if a := r.AUC; a != nil {
		text += fmt.Sprintf("Area under the curve: %s (%s to %s).\n", cli.Figure(a.Mean), cli.Figure(a.Min), cli.Figure(a.Max))
	}
	text += fmt.Sprintf("%s, %s: %s, %d failed, %s sent as %s", cli.Plural(uint64(r.Peers), "peer"), r.Strategy, cli.Plural(r.Exchanges, "exchange"), r.Failed, cli.Size(r.BytesSent), r.Codec)
	if r.Refused > 0 {
		text += fmt.Sprintf("; %s refused, as busy partners do", cli.Plural(r.Refused, "proposal"))
	}
	text += ".\n" + r.summary() + r.apart() + r.footprint() + linkSummary(r.Links) + r.FinalResult.Summary()
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

// apart tells how far apart models have ended, and how that is known.
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
	case !math.IsNaN(d): // in virtual time, where all are seen
		return fmt.Sprintf("Models %.3g apart at the end.\n", d)
	case r.Peer != "":
		return "How far apart the models have ended is unknown: the others' last exchanges may follow this peer's (--final merge makes them the same).\n"
	}
	return "How far apart the models have ended is unknown: fewer than two can be compared.\n"
}

// Spread is a figure over several peers.
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
	all.Mean = min(max(all.Mean, all.Min), all.Max) // thirds of equal values may add up to more than them
	return all
}

// footprint tells what the run took from the machine, in words.
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

// LinkResult is what a peer has measured of the way to a partner, and the codec on
// which that has decided.
type LinkResult struct {
	Peer             string  `json:"peer"`
	Partner          string  `json:"partner"`
	Codec            string  `json:"codec"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	RoundTripSeconds float64 `json:"round_trip_seconds"`
	Exchanges        uint64  `json:"exchanges"`
}

// maxShownLinks bounds the lines that a summary has on links.
const maxShownLinks = 32

// linkSummary tells in words which codec each link has decided on.
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

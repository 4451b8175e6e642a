// Package stats are the figures by which a peer tells what it knows of itself and its run.
package stats

import (
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Peer is what a peer knows of itself and the run at one moment.
type Peer struct {
	// Self is the peer, Role its place in the overlay: "active" initiates
	// exchanges, "passive" serves them, "undecided" does neither yet.
	Self transport.PeerID
	Role string
	// Name is what people call it, as its settings say.
	Name string
	// Incarnation counts the lives of this peer that the network knows of.
	Incarnation uint64

	// Steps is the number of gradient steps of this peer, of which Resumed are those
	// of earlier lives, behind the checkpoint that it came back with. FlockSteps is the
	// estimate of those of all peers together, and Target what the flock has to do; 0
	// if the run has no end. Progress is their quotient, 0 to 1.
	Steps, FlockSteps, Target uint64
	Resumed                   uint64
	Progress                  float64
	// Over tells that the flock has done its work.
	Over bool
	// StoppedBy is what has ended the run: "work" that is done, the "operator", or, as peer.Until says, "accuracy",
	// "loss", "plateau" or "deadline". Empty before; where two come at once, it counts once the trainer has closed.
	StoppedBy string
	// Merged tells that this peer has the model that the final merge has made of all, with
	// the same bytes as the others that took part: all that were here, it alone if the
	// others had left. False where there is no such merge.
	Merged bool
	// Loss is a running mean over about the last hundred steps; NaN before the
	// first.
	Loss float64
	// Rate is the learning rate of the last step.
	Rate float64

	// Members is the number of peers in the run, this one included; Lost is how
	// many have gone without leaving.
	Members, Lost int
	// Duplicates is the number of members, this one included, that have begun one life after
	// another within a minute or two: two processes have one key.
	Duplicates int
	// Joined tells that another member was reached, or none was asked for.
	Joined bool
	// Connections is the number of open connections, ConnectionsMax the most seen.
	Connections, ConnectionsMax int
	// Quarantined is the number of peers that this one keeps away from now.
	Quarantined int

	// Age is the number of gradient steps behind this peer's model: its own, and
	// those behind the model that it copied, or came back with.
	Age uint64

	Exchanges Exchanges
	State     State
	Control   Control
}

// Control tells what became of the control messages that a peer was sent, and what the
// operator wants now.
type Control struct {
	// Taken counts messages of the operator and digests that said something new.
	Taken uint64
	// Known counts repetitions, and what something newer had replaced.
	Known uint64
	// Malformed, Oversize, Foreign (of another run, another operator, or no member)
	// and Forged (with a wrong signature) count what was ignored and not passed on,
	// Hasty digests that came sooner than a member may send them.
	Malformed, Oversize, Foreign, Forged, Hasty uint64
	// Unasked counts operators' messages at a peer that has none.
	Unasked uint64
	// Neighbours is the number of connected processes that pass messages on.
	Neighbours int
	// Paused and Stopped tell what the operator wants.
	Paused, Stopped bool
}

// Exchanges counts a peer's exchanges since its start.
type Exchanges struct {
	// Initiated and Served are those completed, by side.
	Initiated, Served uint64
	// Last is when the last of these completed; zero before the first.
	Last time.Time
	// Refused counts proposals that partners declined, Declined those that this
	// peer did, Failed exchanges that broke off, at either side.
	Refused, Declined, Failed uint64
	// InDoubt is the number of slices that a partner may have applied and this side
	// has not: an exchange broke off, and the partner has not yet said. Settled
	// counts those that were cleared up since, and Lost those that were given up
	// because the partner did not come back in time or in the same life. LostBound
	// is the sum of the norms of what was lost: at most so far has the sum of all
	// models been moved, and their mean by that over the number of peers.
	InDoubt, Settled, Lost uint64
	LostBound              float64
	// Retransmitted counts the blocks of lattice codes that failed and had to be sent again,
	// at either side: the models were farther apart there than both took them to be.
	Retransmitted uint64
	// Codecs tells, where the link decides, for how many partners it decides on each
	// codec; Links are those used last, at most MaxLinks, ordered by partner, with
	// what was measured. Only who initiates measures: a passive peer has none.
	Codecs map[string]int
	Links  []Link
	// Biases are the partners that push most in one direction, at most MaxBiases of
	// those met last, the largest first.
	Biases []Bias
	// Harms are what exchanges with partners do to this peer's loss, at most MaxHarms of
	// those met last, the least trusted first.
	Harms []Harm
	// Quarantines counts how often a partner was found to break the rules, or to do grave
	// harm.
	Quarantines uint64
	// BytesSent and BytesReceived count what exchanges moved, headers and
	// proposals included, those that failed too.
	BytesSent, BytesReceived uint64
	// BitsPerParameter is the mean of the two directions over completed exchanges,
	// headers included.
	BitsPerParameter float64
	// ConsensusDistance estimates the root mean square distance of a peer's model
	// from the flock's mean, from the distances that exchanges measure: half of
	// their mean square is that of the consensus distance (Kong et al., 2021).
	ConsensusDistance float64
	// Every is the present H: local steps between two exchanges initiated.
	Every int
	// Took is the mean time of an exchange over about the last ten. Cost estimates
	// the processor time that one takes here: the work on the slices is measured,
	// that of the transport is taken as a nanosecond a byte.
	Took, Cost time.Duration
	// LongestHold is the longest time for which Step kept the trainer outside its
	// gradient function, joining aside, or for which the whole process stood still,
	// within it too: it was stopped, or had no processor.
	LongestHold time.Duration
	// Blocked tells, step by step, for how long exchanges kept the trainer waiting
	// for a slice.
	Blocked Histogram
}

// Completed is the number of exchanges completed at either side.
func (s Exchanges) Completed() uint64 { return s.Initiated + s.Served }

// MaxLinks bounds the links that are listed: those used last.
const MaxLinks = 16

// Link is what the exchanges that a peer initiated have shown of the way to one
// partner.
type Link struct {
	Partner transport.PeerID
	// Codec is the name of the codec on which the link decides; empty where the
	// policy leaves nothing to the link.
	Codec string
	// Rate is what the link carries, in bytes a second of the busier direction (at
	// least: exchanges that hardly move anything cannot tell), and Round the time from
	// a question to its answer.
	Rate  float64
	Round time.Duration
	// Retransmitted is the share of blocks that had to be sent again.
	Retransmitted float64
	// Exchanges counts those that were measured.
	Exchanges uint64
}

// MaxBiases bounds the partners whose bias is listed.
const MaxBiases = 8

// Bias is the directional bias of the differences that this peer has applied with a partner,
// recent ones most: each may be within the bound, and together they push the model.
type Bias struct {
	Partner transport.PeerID
	// Bias is the length of the sum of the differences over the sum of their lengths: 1
	// if all pointed the same way. Of partners with data alike it is 0.2 to 0.5, of
	// those with other labels than most up to 0.9; from 0.97 on the log tells.
	Bias float64
	// Exchanges counts those that have moved anything.
	Exchanges uint64
}

// MaxHarms bounds the partners whose harm is listed.
const MaxHarms = 8

// Harm is what exchanges with one partner do to this peer's loss, recent ones most, measured
// by the gradients of this peer's next steps. A peer that has met only one partner judges
// nobody.
type Harm struct {
	Partner transport.PeerID
	// Harm is the mean rise of the loss by an exchange, in units of what an exchange with
	// another partner usually changes it by, up or down. Honest partners have a value below
	// 0, or up to about 1 where data are unlike.
	Harm float64
	// Trust is the share of the clipping bound that the partner has: 1 for nearly all
	// partners, and down to 0.05 for one that does harm again and again. At a quarter the log
	// names the partner.
	Trust float64
	// Exchanges counts those that were judged.
	Exchanges uint64
}

// State is a peer's figures about copies of the model.
type State struct {
	// Servers is the number of members whose slices are in the model with which this
	// peer began; 0 if it began with values of its own. Slices is the number of
	// slices, and Took the time from the first request to the last.
	Servers, Slices int
	Took            time.Duration
	// Retransmitted counts slices that were asked for again, because their state server went, was
	// slow, or lied; Faulty counts the state servers that lied.
	Retransmitted uint64
	Faulty        int
	// Kept tells whether this peer came back with a checkpoint and trained on from it.
	Kept bool
	// Alone tells that it came to a flock that had trained, found nobody to give it
	// the flock's model, and began with values of its own.
	Alone bool

	// Joiners is the number of copies that this peer is giving now, Given counts
	// the slices that it has given so far.
	Joiners int
	Sent    uint64
}

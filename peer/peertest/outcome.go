package peertest

import (
	"crypto/sha256"
	"io"
	"time"
)

// Watch says what is measured in a simulation.
type Watch struct {
	// Evaluate is how many peers are evaluated at the end, spread evenly over those that
	// are present. Default: 32.
	Evaluate int
	// Points is the number of points of the curve, at even progress, each from four peers on a
	// part of the data. 0 means no curve.
	Points int
	// Target is an accuracy; the time when a point of the curve reaches it is noted, and with Stop the run ends there.
	Target float64
	Stop   bool
	// Record receives a recording of the world; see ReadRecording. Nil means no recording.
	Record io.Writer
	// Point is called with each point of the curve as it is measured.
	Point func(Point)
}

// Outcome is the result of a simulation. It is a function of the Simulation alone.
type Outcome struct {
	// Seconds is the virtual time until the work was done.
	Seconds float64
	// Steps and Samples are those of all peers together.
	Steps, Samples uint64
	// Final is the evaluation at the end, over all held-out data, when all activity had
	// ended.
	Final Point
	// Curve is the evaluations during the run.
	Curve []Point
	// TargetSeconds is the virtual time of the first point of the curve, or the last,
	// whose accuracy is at least Watch.Target; negative if there is none.
	TargetSeconds float64
	// StoppedBy is what ended the run: "work" that is done, "accuracy" (that of Watch.Target, too), "loss", "plateau" or "deadline";
	// empty if nothing did.
	StoppedBy string
	// Best is the accuracy, on all held-out data, of the best model that Work.Until has had evaluated; negative if it has had none.
	Best float64
	// Traffic counts what the peers sent to each other.
	Traffic Traffic
	// Stages holds the figures of each stage of a Pipeline, and Rows what became of the micro-batches of all peers' rows.
	Stages []StageOutcome
	Rows   MicroBatches
	// Each holds the figures of each peer.
	Each []PeerOutcome
	// Events is the number of things that happened in the world.
	Events int
	// Digest is a hash of all models at the end.
	Digest [sha256.Size]byte
}

// Point is a moment of a run.
type Point struct {
	// Seconds is the virtual time.
	Seconds float64
	// Progress is the share of the work that was done.
	Progress float64
	// Bytes are those sent by all peers, and Across those of them to other sites.
	Bytes, Across int64
	// Mean, Min and Max are the accuracies of the evaluated peers on held-out data,
	// TestLoss the mean of their losses there, which are between LeastLoss and MostLoss, and Loss
	// that of the peers' running means on their training data.
	Mean, Min, Max, TestLoss, LeastLoss, MostLoss, Loss float64
	// Consensus is the root mean square distance of the models of the present peers from
	// their mean.
	Consensus float64
}

// Traffic counts what happened between peers.
type Traffic struct {
	// Exchanges are those completed, of transfers as well; each counts once.
	Exchanges, Refused, Failed, InDoubt uint64
	// Bytes are those sent by all peers, copies for joiners included, and Across those of them to other sites.
	Bytes, Across int64
	// BitsPerParameter is the number of bits per parameter of an exchange, headers
	// included, as the mean of the two directions; NaN if there was no exchange.
	BitsPerParameter float64
	// Lost is how often a peer has crashed or left.
	Lost int
}

// PeerOutcome is the result of one peer.
type PeerOutcome struct {
	Steps     int
	Bytes     int64
	Exchanges int
	// Partners is the number of peers with which it exchanged.
	Partners int
	// Waited is the time that its trainer was kept waiting by the algorithm.
	Waited time.Duration
	// Here tells whether it was present at the end.
	Here bool
}

package peertest

import (
	"crypto/sha256"
	"io"
	"time"
)

// Watch says what of a simulation is measured.
type Watch struct {
	// Evaluate is how many peers are evaluated at the end, spread evenly over those
	// who are there. Default: 32.
	Evaluate int
	// Points is the number of points of the curve, at even progress, each from four peers on a
	// part of the data. 0 is no curve.
	Points int
	// Target is the accuracy whose time is noted, and Stop ends the run there.
	Target float64
	Stop   bool
	// Record receives a recording of the world; see ReadRecording. Nil is none.
	Record io.Writer
	// Point is called with each point of the curve as it is measured.
	Point func(Point)
}

// Outcome is what a simulation has come to. All of it is a function of the Simulation.
type Outcome struct {
	// Seconds is the virtual time until the work was done.
	Seconds float64
	// Steps and Samples are those of all peers together.
	Steps, Samples uint64
	// Final is how the models did in the end, over all held-out data, when all had
	// come to rest.
	Final Point
	// Curve is how they did on the way.
	Curve []Point
	// TargetSeconds is the virtual time of the first point of the curve, or the last,
	// whose accuracy is at least Watch.Target; negative if there is none.
	TargetSeconds float64
	// Traffic is what they said to each other.
	Traffic Traffic
	// Each has the peers' own numbers.
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
	// Bytes are those sent by all peers.
	Bytes int64
	// Mean, Min and Max are the accuracies of the evaluated peers on held-out data,
	// TestLoss the mean of their losses there, which are between LeastLoss and MostLoss, and Loss
	// that of the peers' running means on their training data.
	Mean, Min, Max, TestLoss, LeastLoss, MostLoss, Loss float64
	// Consensus is the root mean square distance of the models of those who are there
	// from their mean.
	Consensus float64
}

// Traffic counts what happened between peers.
type Traffic struct {
	// Exchanges are those completed, of transfers as well; each counts once.
	Exchanges, Refused, Failed, InDoubt uint64
	// Bytes are those sent by all peers, copies for joiners included.
	Bytes int64
	// BitsPerParameter is what an exchange takes for each parameter, headers included,
	// as the mean of its two directions; NaN if there was none.
	BitsPerParameter float64
	// Lost is how often a peer has crashed or left.
	Lost int
}

// PeerOutcome is what one peer has come to.
type PeerOutcome struct {
	Steps     int
	Bytes     int64
	Exchanges int
	// Partners is the number of peers that it spoke with.
	Partners int
	// Waited is the time that its trainer was kept waiting by the algorithm.
	Waited time.Duration
	// Here tells that it was there in the end.
	Here bool
}

// Package averaging decides who exchanges with whom and when the trainer may
// go on. It never sees a model: its machines are pure, deterministic state
// machines that take events and give actions, with the time and the source of
// randomness as arguments. Package peer carries the actions out over a real
// network; a test or a simulation does so in virtual time, with the same code.
//
// The machine of this package is ADPSGD, asynchronous decentralized parallel
// SGD (Lian et al., 2018): every so many local steps an active peer averages
// its model with one passive neighbour, and no trainer ever waits. Rival
// algorithms are machines too; they live in package baseline.
//
// Package merge gives all peers one model when the run is over.
//
// # An algorithm of your own
//
// Write a type with the one method of Machine, and give it as peer.Exchange.Machine. It receives
// events about steps, views and exchanges, and decides to whom an exchange is proposed and when
// the trainer may go on. The example of peertest.Simulate named "algorithm" is a complete one.
//
// # Exchanges that overlap
//
// A peer initiates one exchange at a time and serves Config.MaxInbound. Each is computed
// from a model that the others are about to change, so the weight of each falls with their
// number: w = 1/(1+c), where c is the larger Action.Overlap of the two sides. A fixed
// weight of one half diverges from four exchanges at once on. c counts everything that may
// still change the model: exchanges in flight, inbound ones that are broken off but not yet
// over, and those whose last slices are in doubt (the Doubt event).
//
// # Who is passed over
//
// A partner that failed is passed over for Config.RetryAfter, one that is unfit
// until the view changes. A peer in quarantine (the Quarantined event) is passed
// over and refused until that is over, and one that holds this peer in quarantine
// for a time that doubles; neither ends with the view. A busy partner is asked
// again in the next round, and the next one at once.
//
// # Limits
//
// A machine holds at most MaxOverlap inbound exchanges, 64 quarantines, 64 partners that
// hold this peer in quarantine, and the links of one view. It trusts the runtime that
// reports events, and assumes nothing about the peers.
//
// What an exchange does to the parameters is not decided here: see internal/replica.
// Package topology decides who neighbours whom. What a machine does, event by event, is
// best read in testdata/transcripts/adpsgd.
package averaging

// Package replica owns a peer's parameters and carries out the slices of an
// exchange on them: read a slice, encode it, decode the partner's, add the
// difference. It does no I/O: frames come and go as byte slices, so that the
// same code runs under a real network and in simulation.
//
// The vector is cut into slices, each with a lock that is held for one slice's
// arithmetic and never across I/O. Every change is an addition, so gradient
// steps and exchanges may overlap freely and none is lost: the two ends of an
// exchange add the same numbers with opposite signs, and their sum stays what
// it was, whatever the codec's error or the delay.
//
// Initiator and Responder are the two sides of an exchange, each with a lane for every
// stream that the exchange uses. A Ledger keeps, at each side, what is needed to settle the
// slices that a cut stream left in doubt. Each slice keeps the recent distances of
// partners' models (see bound.go), and from these the share of a difference to take.
//
// Sender and Receiver are the two sides of a transfer, which moves a part of a buffer
// one way: parameters, the last gradient, or a sum of gradients, in which each piece of
// a slice has a weight of its own (see pieces.go and docs/design/020).
//
// Package averaging decides who exchanges with whom; package conversations has the streams,
// deadlines and questions.
package replica

// Package conversations drives the conversations of a peer, which package session defines, over
// streams: it opens and serves the streams, bounds the waits, lets the averaging machine break an
// exchange off at any moment, and counts, logs and reports the outcome of each.
//
// Exchanges and transfers that this peer begins are outbound; what partners begin is
// served; repairs ask about slices that a broken exchange has left in doubt; and messages
// of machines travel one way over streams of their own.
package conversations

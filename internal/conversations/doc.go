// Package conversations drives the conversations of a peer, which package session describes, over
// streams: it opens and serves the streams, waits no longer than is reasonable, lets the
// averaging machine break an exchange off at any moment, and counts, logs and reports what
// has become of each.
//
// Exchanges and transfers that this peer begins are outbound; what partners begin is
// served; repairs ask about slices that an exchange which broke off has left in doubt; and
// words of machines travel one way over streams of their own.
package conversations

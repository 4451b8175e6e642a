// Package collective is what machines say that move more than exchanges do: parts of a
// buffer one way, words, sums. The rivals of averaging/baseline and the final merge of
// averaging/merge are such machines; an algorithm of a user's own is an averaging.Machine
// and knows nothing of this.
//
// Summing is what machines share that sum over a flock what their replicas hold: package sums decides who takes
// part, who hands what to whom, and when a sum counts. A machine has its own part of
// the sum, and its own use for it; it says when it takes part, and may say who coordinates.
//
// An Event is an averaging.Event and what transfers and words add to it, an Action an
// averaging.Action and what those ask for. Runtimes drive every machine as a Machine of
// this package: Of gives any averaging.Machine that form.
package collective

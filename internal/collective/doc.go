// Package collective extends package averaging for machines that need more than exchanges:
// one-way transfers of parts of a buffer, messages, and sums. The rivals of
// averaging/baseline and the final merge of averaging/merge are such machines; a user's own
// algorithm is an averaging.Machine and does not need this package.
//
// Summing is shared by machines that sum their replicas' buffers over the flock: package sums decides who takes
// part, who sends what to whom, and when a sum counts. A machine provides its part of the sum and uses the
// result; it says when it takes part, and may say who coordinates.
//
// An Event is an averaging.Event with fields for transfers and messages, an Action an
// averaging.Action with the same. Runtimes drive every machine as a Machine of this
// package: Of gives any averaging.Machine that form.
package collective

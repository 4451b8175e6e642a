// Package sums decides how the members of a flock add up what each of them brings, so that all
// get the same bytes: who takes part, who sends which numbers to whom, and when all
// have the sum, so that each may use it.
//
// One member coordinates: the one that did so last, or the first in the order of their ids. It
// takes part in a sum or not. Each participant tells it where it is (STATUS), and when all have
// come that are expected, it gives out places (PLACE). From its place each knows what it hands to whom
// (SHARE): in log n rounds partners send each other halves, so that each keeps a part in which all are
// added, and in as many what they have. Who has all of it says so, and once all have, the coordinator
// says that it counts (COMMIT).
//
// Whoever dies breaks an attempt off, and the next is made without it, of what each has
// brought: until COMMIT nobody has made use of a sum. If it is the coordinator that dies, the next
// one asks every member how far it is before it gives out a place: if one has made use of the
// sum, all survivors have it, and use it too. Members that cannot reach each other and live on
// are beyond that: a least number of participants, more than half of all, lets only one side of
// a cut go on.
//
// A Machine is pure: messages, the time and lost members in, messages and results out. It
// belongs to one goroutine. Package sumnet carries messages over streams.
package sums

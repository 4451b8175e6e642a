// Package sums is the protocol by which the members of a flock sum their data, so that all get
// the same bytes: it decides who takes part, who sends which numbers to whom, and when all
// have the sum, so that each may use it.
//
// One member coordinates: the last coordinator, or the first in the order of the ids. It may take part
// in a sum or not. Each participant sends it its state (STATUS), and when all expected ones have come,
// it gives out places (PLACE). The place says what a participant sends to whom (SHARE): in log n
// rounds partners send each other halves, so that each ends with one part of the sum of all; in as
// many rounds they send each other the parts that they have. A participant that has the whole sum
// reports it, and once all have, the coordinator declares that the sum counts (COMMIT). Who has made a
// sum alone coordinates no longer, so that it follows the coordinator of those that it meets.
//
// A death breaks an attempt off, and the next is made without the dead member, from the original
// data: until COMMIT nobody has used the sum. If the coordinator dies, the next one asks every
// member for its state before it gives out places: if one has used the sum, all survivors have it,
// and use it too. This does not cover live members that cannot reach each other: for these,
// require more than half of all members as participants, so that only one side of a divided
// network can go on.
//
// A Machine is pure: messages, the time and lost members in, messages and results out. It
// belongs to one goroutine. Package sumnet carries messages over streams.
package sums

// Package orders is whom a peer obeys: it hears the operator's messages and the members'
// digests, on the run's topic and from members that it asks, keeps what still counts, tells
// it to others, and says what holds at a step of the flock (docs/design/017).
//
// It acts on nothing but its own state: who trains asks it whether to wait (Held), and by
// what schedule, pace and work (At).
package orders

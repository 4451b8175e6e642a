// Package orders carries out the operator's commands: it receives the operator's messages and
// the members' digests, on the run's topic and from members that it asks, keeps those that
// still count, passes them on, and gives the course at a step of the flock (docs/design/017).
//
// It changes only its own state: a trainer asks it whether to wait (Held), and for the
// schedule, pace and work (At).
package orders

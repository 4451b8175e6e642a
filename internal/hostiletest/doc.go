// Package hostiletest has tests of what liars and tampering do to a flock of real peers, of which it knows
// what a user does: figures, logs, hooks and errors. What one room does with one lie is tested in that room;
// here stand the attacks that take a whole flock to be seen:
//
//   - world: members that do all at once that a member can do wrong, while the others learn;
//   - siege: members that hold a passive peer's only place for nothing;
//   - flood: a member that has a peer write line after line into its log;
//   - push: a member that learns nothing and walks in one direction;
//   - tamper: frames that are changed on their way between two peers that train.
//
// Flocks are in memory and in virtual time.
package hostiletest

// Package metrics shows a peer to those who watch it from outside: what it counts, in
// Prometheus' format, whether it lives and does its work, and profiles where they are
// wanted.
//
// The numbers are the peer's own (stats.Peer and stats.Tallies), asked for when a
// scrape comes: without one nothing is counted and nothing runs. There is a registry
// for each server, so that several peers may live in one process.
//
// Limits: maxScrapes requests are answered at once, the others refused; there is no
// TLS and no password, so the address should be one that only the operator reaches.
//
// Read server.go first; families.go names every metric, and docs/OPERATING.md
// says what to make of each.
package metrics

// Package metrics shows what a peer counts in the text format of Prometheus (and OpenMetrics'
// scrapers), as an http.Handler, without any library for it.
//
// The numbers are the peer's own (stats.Peer and stats.Counters), asked for when a request comes:
// without one nothing is counted and nothing runs. Families.go names every metric, and docs/OPERATING.md
// says what to make of each. There is no TLS and no password: the address is for those who operate.
package metrics

// Package metrics serves the metrics of package peer/metrics for a peer, figures of the process, health and
// readiness, and, if wanted, profiles.
//
// Limits: maxScrapes requests are answered at a time, others are refused. There is neither TLS nor a password, so
// only the operator should reach the address.
package metrics

// Package metrics serves what package peer/metrics tells of a peer, with numbers of the process,
// whether it lives and does its work, and profiles where they are wanted.
//
// Limits: maxScrapes requests are answered at once, the others refused; there is no
// TLS and no password, so the address should be one that only the operator reaches.
package metrics

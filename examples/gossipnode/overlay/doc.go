// Package overlay is the command topology: it makes the roles and links of a number of peers, measures how well
// models mix on them, and draws them.
//
// Limits: at most maxPeers peers. The figures come from the overlay of package topology and from random exchanges on
// it; no peer runs.
//
// Read command.go for the output, then measure.go for the measurements.
package overlay

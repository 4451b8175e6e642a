// Package overlay is the command topology: it makes the roles and links that so many
// peers would have, measures how well models mix on them, and draws them.
//
// Limits: at most maxPeers peers. The figures are those of package topology's overlay and
// of random exchanges on it; no peer runs.
//
// Read command.go for what is told, then measure.go for how it is found.
package overlay

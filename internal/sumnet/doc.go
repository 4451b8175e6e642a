// Package sumnet carries what package sums decides over streams: one to each member that is
// spoken to, and one from each that speaks, which stay open between sums.
package sumnet

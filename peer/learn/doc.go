// Package learn has learners whose training is sums over a flock: each member brings sums
// over its own rows, all get the same totals, and so the same model, as one machine with all
// rows would have made it, up to rounding.
package learn

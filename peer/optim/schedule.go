package optim

import "github.com/seed-97356399/murmuration/peer/optim/rate"

// Schedule is the learning rate over the progress of the flock, and Shape its course. They
// are package rate's, for who has no optimizer: an operator's program.
type (
	Schedule = rate.Schedule
	Shape    = rate.Shape
)

// The shapes, and the rate of a zero Schedule.
const (
	Cosine      = rate.Cosine
	Constant    = rate.Constant
	Stepped     = rate.Stepped
	DefaultRate = rate.DefaultRate
)

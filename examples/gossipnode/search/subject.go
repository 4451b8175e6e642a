package search

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/search"
)

// subject is what trials train: a model by gradients, or a learner.
type subject interface {
	// flags are those that a file may give for it; withheld has those that the search itself gives, fixed those that are the same for
	// all trials, withheld or not.
	flags() *pflag.FlagSet
	withheld() []string
	fixed() []string
	// anew: a trial cannot be trained on.
	anew() bool
	// fault is why a trial with these flags cannot be trained; nil if it can.
	fault(given map[string][]string, c search.Config) error
	// open reads the data, of the first of so many parts, to find its faults before others are met.
	open(ctx context.Context, given map[string][]string, parts int) error
	// train trains a trial, and returns the model if it can be trained on. An error is the member's, not the trial's.
	train(ctx context.Context, s slice) (search.Outcome, []byte, error)
	// resource are the flags that train a trial for so many steps.
	resource(steps int) map[string][]string
	// scores names the score.
	scores() string
}

// slice is a part of a trial for one member.
type slice struct {
	search.Job
	config search.Config
	given  map[string][]string
	model  []byte // at From; nil at the beginning
	// number is the place of this member in the sub-flock, and shared tells that all have the same data, to be divided.
	number int
	shared bool
	// network is how the sub-flock meets; a sub-flock of one uses none.
	network peer.Network
	// made is told of each step.
	made func(steps int)
}

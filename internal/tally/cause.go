package tally

import (
	"errors"

	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// causeOf names why an exchange broke off.
func causeOf(err error) string {
	_, theirs := replica.Blame(err)
	switch {
	case theirs:
		return "protocol" // the partner broke the rules
	case errors.As(err, new(*wire.Refusal)):
		return "refused" // by the partner, in the middle
	case errors.Is(err, seam.ErrUnreachable):
		return "unreachable"
	case links.RanOut(err):
		return "time" // it took too long, or nothing moved
	case errors.Is(err, session.ErrAborted):
		return "given-up"
	}
	return "cut" // the stream ended or broke
}

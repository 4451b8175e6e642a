package arrival

import (
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A refusal by a process whose peer may be only starting is asked again every perhapsWait,
// and believed once it has stood for perhapsPatience.
const (
	perhapsWait    = 250 * time.Millisecond
	perhapsTimeout = 2 * time.Second
)

// refusals are since when each address has refused whenever it was asked: of a process that
// was not there before, the first says nothing.
type refusals map[string]time.Time

// judge tells of the newest answer of an address whether this peer is refused, and for good: the models
// or the runs differ, or it has been so for perhapsPatience. Any other refusal may pass: the process has
// no handler for the run or the protocol, which may be because its peer is only starting, or leaving; or
// a list is about to change.
func (r refusals) judge(address string, answer error) (refused, final bool) {
	refusal, refused := errors.AsType[*transport.RefusedError](answer)
	if !refused {
		delete(r, address)
		differs := errors.As(answer, new(*description.MismatchError))
		return differs, differs
	}
	first, before := r[address]
	if !before {
		r[address] = time.Now()
	}
	return true, refusal.Why == transport.ErrLayout || before && time.Since(first) >= perhapsTimeout
}

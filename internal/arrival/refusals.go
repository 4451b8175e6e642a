package arrival

import (
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A process that refuses may only be starting its peer: it is asked again every
// perhapsWait, and the refusal is final after perhapsTimeout.
const (
	perhapsWait    = 250 * time.Millisecond
	perhapsTimeout = 2 * time.Second
)

// refusals holds since when each address has always refused. The first refusal of a process
// that was not there before does not count.
type refusals map[string]time.Time

// judge decides whether the newest answer of an address is a refusal, and whether that is final: the
// models or the runs differ, or refusals have lasted for perhapsTimeout. Any other refusal may be
// temporary: the process has no handler for the run or the protocol because its peer is starting or
// leaving; or a list is about to change.
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

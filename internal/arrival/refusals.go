package arrival

import (
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// A refusal by a process whose peer may be only starting is asked again every perhapsWait,
// and believed once it has stood for perhapsPatience.
const (
	perhapsWait     = 250 * time.Millisecond
	perhapsPatience = 2 * time.Second
)

// refusals are since when each address has refused whenever it was asked: of a process that
// was not there before, the first says nothing.
type refusals map[string]time.Time

// stands tells of the newest answer of an address whether it has refused for perhapsPatience.
func (r refusals) stands(address string, refused bool) bool {
	first, before := r[address]
	switch {
	case !refused:
		delete(r, address)
	case !before:
		r[address] = time.Now()
	}
	return refused && before && time.Since(first) >= perhapsPatience
}

// perhaps tells whether a refusal may pass: the process has no handler for the run or the
// protocol, which may be because its peer is only starting, or leaving; or a list is about
// to change.
func perhaps(r *seam.RefusedError) bool { return r.Why != seam.ErrLayout }

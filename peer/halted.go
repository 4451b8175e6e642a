package peer

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
)

// What a *HaltedError unwraps to, where the algorithm has named a reason.
var (
	// ErrNoServer: nobody can serve the parameters.
	ErrNoServer = errors.New("nobody can serve the parameters")
	// ErrNoPartners: too few members are left for the algorithm to go on.
	ErrNoPartners = errors.New("too few members are left")
)

// HaltedError says that the algorithm which the peers train with cannot go on. The
// gradient of the step was not used. It unwraps to ErrNoServer or ErrNoPartners.
type HaltedError struct {
	// Reason is the algorithm's.
	Reason averaging.Reason
}

// Error names the reason and what to do about it.
func (e *HaltedError) Error() string {
	remedy := "Call Step again to try once more; read the log for what happened before."
	switch e.Reason {
	case averaging.NoServer:
		remedy = "Start the named server again, or name none, so that the peers elect one; then call Step again."
	case averaging.NoPartners:
		remedy = "Let members join and call Step again, or choose an algorithm that goes on alone (adpsgd)."
	}
	return fmt.Sprintf("the algorithm cannot go on: %s. %s", e.Reason, remedy)
}

// Unwrap gives the sentinel of the reason.
func (e *HaltedError) Unwrap() error {
	switch e.Reason {
	case averaging.NoServer:
		return ErrNoServer
	case averaging.NoPartners:
		return ErrNoPartners
	}
	return nil
}

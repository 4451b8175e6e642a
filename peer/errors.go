package peer

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
)

// What a caller of a peer handles, to be tested with errors.Is.
var (
	// ErrRunOver: the flock has done its work. The peer goes on serving exchanges
	// until Close.
	ErrRunOver = errors.New("the run is over")
	// ErrConfig: Start was given a Config that cannot be; to try again does not help.
	ErrConfig = errors.New("peer configuration")
	// ErrClosed: the peer has been closed.
	ErrClosed = errors.New("the peer is closed")
)

// ErrCoordinatorLost is what a *HaltedError unwraps to when the peer is lost that coordinates
// the run or serves its parameters.
var ErrCoordinatorLost = errors.New("the peer that coordinates the run is lost")

// HaltedError says that the algorithm which the peers train with cannot go on. The
// gradient of the step was not used.
type HaltedError struct {
	// Reason is the algorithm's.
	Reason averaging.Reason
}

// Error names the reason and what to do about it.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("the algorithm cannot go on: %s. Start all peers again, from a checkpoint if there is one; AD-PSGD goes on without any one of them", e.Reason)
}

// Unwrap gives the sentinel of the reason.
func (e *HaltedError) Unwrap() error {
	if e.Reason == averaging.NoCoordinator {
		return ErrCoordinatorLost
	}
	return nil
}

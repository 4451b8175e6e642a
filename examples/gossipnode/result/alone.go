package result

import "strings"

// ExitNeverJoined is the exit code of neverJoinedError.
const ExitNeverJoined = 4

// neverJoinedError: this peer was to train with others, but has done the work alone.
type neverJoinedError struct{ tried []string }

func (e neverJoinedError) Error() string {
	return "NEVER JOINED: nobody at " + strings.Join(e.tried, ", ") + " has let this peer in, and it has trained alone. " +
		"Check with gossipnode doctor --join, or ask for a new token; --alone-ok if that is as it should be"
}

// ExitWith is the exit code.
func (neverJoinedError) ExitWith() int { return ExitNeverJoined }

// NeverJoined returns a neverJoinedError if the peer was to join one of these addresses, and no
// member let it in.
func (s Share) NeverJoined(tried []string) error {
	if s.Found || len(tried) == 0 {
		return nil
	}
	return neverJoinedError{tried}
}

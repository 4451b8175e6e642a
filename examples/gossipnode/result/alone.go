package result

import "strings"

// ExitNeverJoined is the exit code of neverJoinedError.
const ExitNeverJoined = 4

// neverJoinedError: the work is done, by this peer alone, which was to take part with others.
type neverJoinedError struct{ tried []string }

func (e neverJoinedError) Error() string {
	return "NEVER JOINED: nobody at " + strings.Join(e.tried, ", ") + " has let this peer in, and it has trained alone. " +
		"Check with gossipnode doctor --join, or ask for a new token; --alone-ok if that is as it should be"
}

// ExitWith is the exit code.
func (neverJoinedError) ExitWith() int { return ExitNeverJoined }

// NeverJoined is a neverJoinedError if the peer was to join one of these addresses and has
// found nobody there.
func (s Share) NeverJoined(tried []string) error {
	if s.Found || len(tried) == 0 {
		return nil
	}
	return neverJoinedError{tried}
}

package topology

import (
	"errors"
	"fmt"
)

// Errors of this package, to be tested with errors.Is.
var (
	// ErrTooManyMembers: more than MaxMembers members.
	ErrTooManyMembers = errors.New("too many members")
	// ErrMember: a member with an empty id, an id that another member has, or a
	// role that does not exist.
	ErrMember = errors.New("invalid member")
	// ErrNoPassive: every member is unreachable, so nobody could answer.
	ErrNoPassive = errors.New("all peers are unreachable, so none can be passive and answer: " +
		"make at least one reachable (open its port, forward it, or start a peer on a public address)")
)

// maxFaults bounds how many faulty members one error lists.
const maxFaults = 16

// faults collects what is wrong with a list of members.
type faults struct {
	listed []error
	more   int
}

func (f *faults) addf(format string, args ...any) {
	if len(f.listed) == maxFaults {
		f.more++
		return
	}
	f.listed = append(f.listed, fmt.Errorf("topology: new view: %w: "+format, append([]any{ErrMember}, args...)...))
}

// err joins all faults, nil if there are none.
func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.listed, fmt.Errorf("topology: new view: %d more faults", f.more))...)
	}
	return errors.Join(f.listed...)
}

package topology

import "errors"

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

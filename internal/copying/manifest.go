package copying

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Fault is a fault of the state that a state server offers. A state server with a fault is not
// asked again.
type Fault string

const (
	// Forged: the manifest is not signed by its state server, or belongs to another.
	Forged Fault = "the manifest is not signed by the donor"
	// Stale: the state is of an earlier life of its state server, or older than the age in the server's
	// own record.
	Stale Fault = "the state is older than its donor's record"
	// WrongSlice: a slice does not match the manifest, or has values that are not finite.
	WrongSlice Fault = "a slice is not the one that the manifest promises"
	// WrongRun and WrongLayout: the state is of another run, or of another model.
	WrongRun    Fault = "another run"
	WrongLayout Fault = "another layout of parameters"
)

// lie tells whether no honest state server would have offered that. Another layout may be
// an operator's mistake, and an old state a bug of a release.
func (f Fault) lie() bool { return f == Forged || f == WrongSlice }

// ServerError says that the state of a state server cannot be used.
type ServerError struct {
	Server transport.PeerID
	Fault  Fault
	Detail string
}

// Error names the state server and what is wrong.
func (e *ServerError) Error() string {
	return fmt.Sprintf("the state that %s offers: %s: %s", e.Server, e.Fault, e.Detail)
}

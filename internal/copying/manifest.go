package copying

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Fault is what is wrong with the state that a donor offers. A donor of which one was
// found is not asked again.
type Fault string

const (
	// Forged: the manifest is not what its donor has signed, or is of another.
	Forged Fault = "the manifest is not signed by the donor"
	// Stale: the state is of an earlier life of its donor, or older than the donor itself
	// says that its model is.
	Stale Fault = "the state is older than its donor's record"
	// WrongSlice: a slice is not what the manifest says, or has values that are not finite.
	WrongSlice Fault = "a slice is not the one that the manifest promises"
	// WrongRun and WrongLayout: the state is of another run, or of another model.
	WrongRun    Fault = "another run"
	WrongLayout Fault = "another layout of parameters"
)

// lie tells whether no honest donor would have offered that: another layout may be a
// mistake of whoever has set it up, and an old state the fault of a release.
func (f Fault) lie() bool { return f == Forged || f == WrongSlice }

// DonorError says that the state that a donor offers cannot be used.
type DonorError struct {
	Donor  seam.PeerID
	Fault  Fault
	Detail string
}

// Error names the donor and what is wrong.
func (e *DonorError) Error() string {
	return fmt.Sprintf("the state that %s offers: %s: %s", e.Donor, e.Fault, e.Detail)
}

package peer

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// What is wrong with the state that a donor offers, to be tested with errors.Is; so
// are ErrLayout and ErrRun. A donor of which one of these was found is not asked
// again.
var (
	// ErrForged: the manifest is not what its donor has signed, or is of another.
	ErrForged = errors.New("the manifest is not signed by the donor")
	// ErrStale: the state is of an earlier life of its donor, or older than the donor
	// itself says that its model is.
	ErrStale = errors.New("the state is older than its donor's record")
	// ErrSlice: a slice is not what the manifest says, or has values that are not
	// finite.
	ErrSlice = errors.New("a slice is not the one that the manifest promises")
)

// DonorError says that the state that a donor offers cannot be used. It unwraps to
// ErrForged, ErrStale, ErrSlice, ErrLayout or ErrRun.
type DonorError struct {
	// Donor is the member that offered it.
	Donor seam.PeerID
	// Detail says more.
	Detail string
	fault  error
}

// Error names the donor and what is wrong.
func (e *DonorError) Error() string {
	return fmt.Sprintf("the state that %s offers: %v: %s", e.Donor, e.fault, e.Detail)
}

// Unwrap gives the sentinel.
func (e *DonorError) Unwrap() error { return e.fault }

// lie tells whether no honest donor would have offered that: another layout may be a
// mistake of whoever has set it up, and an old state the fault of a release.
func (e *DonorError) lie() bool { return e.fault == ErrForged || e.fault == ErrSlice }

// manifest is what a snapshot's donor says of it.
func (p *Peer) manifest(s *snapshot) (wire.Manifest, error) {
	m := wire.Manifest{
		Run: p.config.Run, Layout: p.layout, Donor: string(p.Self()), Incarnation: p.incarnation.Load(),
		Steps: s.steps, FlockSteps: p.flock.total(p.counters.steps.Load()),
		Values: uint64(len(s.values)), SliceLen: uint32(s.sliceLen),
	}
	var err error
	m.Signature, err = p.transport.Sign(m.Statement(nil))
	return m, err
}

// vet checks a donor's manifest against what this peer knows: its own model, who
// sits at the other end, and how old the donor says that its model is.
func (p *Peer) vet(donor seam.PeerID, m wire.Manifest, life uint64, steps uint64) error {
	reject := func(fault error, format string, args ...any) error {
		return &DonorError{Donor: donor, fault: fault, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case m.Donor != string(donor):
		return reject(ErrForged, "it is a manifest of %.64q", m.Donor)
	case !p.transport.Verify(donor, m.Statement(nil), m.Signature):
		return reject(ErrForged, "the signature is wrong")
	case m.Run != p.config.Run:
		return reject(ErrRun, "it is of run %q", m.Run)
	case m.Layout != p.layout:
		return reject(ErrLayout, "%s", wire.ReasonLayout.Remedy())
	case m.Values != uint64(p.replica.SharedLen()) || int(m.SliceLen) != p.replica.SliceLen():
		return reject(ErrLayout, "it has %d values in slices of %d, this peer's %d in slices of %d: set Exchange.SliceLen alike",
			m.Values, m.SliceLen, p.replica.SharedLen(), p.replica.SliceLen())
	case m.Incarnation < life:
		return reject(ErrStale, "it is of incarnation %d, the donor's is %d", m.Incarnation, life)
	case m.Incarnation == life && m.Steps < steps:
		return reject(ErrStale, "%d steps lie behind it, where at least %d were asked for", m.Steps, steps)
	}
	return nil
}

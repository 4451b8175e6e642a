package arrival

import (
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Described holds a peer's own description of the run, and the description that it passes
// on. Safe for concurrent use.
type Described struct {
	identity transport.Identity

	mu   sync.Mutex
	own  description.Description
	held description.Signed
	met  bool // held was received from a member
}

// NewDescribed signs the peer's own description, unless it is empty.
func NewDescribed(identity transport.Identity, own description.Description) (*Described, error) {
	d := &Described{identity: identity, own: own}
	if len(own.Fields) == 0 {
		return d, nil
	}
	var err error
	d.held, err = description.Sign(identity, own)
	return d, err
}

// Recall restores the description of an earlier life, to be passed on, if it still fits and no
// member has sent another.
func (d *Described) Recall(kept description.Signed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, err := kept.Open(d.identity, d.own.Run)
	if !kept.Known() || err != nil {
		return
	}
	if harmful, _ := description.Split(d.own.Differences(before)); len(harmful) == 0 && !d.met {
		d.held = kept
	}
}

// Held is the description that is passed on: that of the first member joined, or this
// peer's own.
func (d *Described) Held() description.Signed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// Value is the value of a field, as configured or as agreed with the others.
func (d *Described) Value(name string) (value string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own.Value(name)
}

// meet compares the description of a joined member with this peer's own, and takes it over.
// It fails with a *description.MismatchError if the difference would harm models or work.
func (d *Described) meet(member transport.PeerID, said description.Signed, log *zap.Logger) error {
	if !said.Known() {
		return nil // the member has no description, or its build has none
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there, err := said.Open(d.identity, d.own.Run)
	if err != nil {
		return err
	}
	harmful, local := description.Split(d.own.Differences(there))
	if len(harmful) > 0 {
		return &description.MismatchError{Peer: member, Differences: harmful}
	}
	if d.met {
		return nil
	}
	d.held, d.met = said, true
	if len(local) > 0 {
		log.Warn("set up otherwise than the run, in what is a peer's own to choose", zap.Stringers("differences", local))
	}
	return nil
}

// Renew takes over the new description of the run, which all members send at once, and compares it with this
// one's own. From now on it passes on the one signed by the signer of the old description, or else that of the
// first member.
func (d *Described) Renew(own description.Description, said []description.Signed) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	by, there, err := d.newest(own, said)
	if err != nil {
		return err
	}
	if harmful, _ := description.Split(own.Differences(there)); len(harmful) > 0 {
		return &description.MismatchError{Peer: said[by].Signer, Differences: harmful}
	}
	d.own, d.held, d.met = own, said[by], true
	return nil
}

// newest finds which description is passed on. Unsigned ones are ignored. So is an older description by the earlier
// signer, which anybody could replay: this member's own takes precedence.
func (d *Described) newest(own description.Description, said []description.Signed) (by int, there description.Description, err error) {
	best, fault := -1, fmt.Errorf("%w: no member says what the run is", description.ErrInvalid)
	for i, s := range said {
		opened, err := s.Open(d.identity, own.Run)
		if err != nil {
			if best < 0 {
				fault = err
			}
			continue
		}
		rank := 0
		if !slices.ContainsFunc(own.Fields, func(f description.Field) bool { _, says := opened.Value(f.Name); return !says }) {
			rank += 2
		}
		if s.Signer == d.held.Signer {
			rank++
		}
		if rank > best {
			best, by, there, fault = rank, i, opened, nil
		}
	}
	return by, there, fault
}

// describe sends the description of the run to a peer that asked for it in its hello.
func (d *Described) describe(stream *framed.Stream, header wire.Header) error {
	held := d.Held()
	if header.Flags&wire.FlagDescribe == 0 || !held.Known() {
		return nil
	}
	return framed.Say(stream, 0, wire.Description{Text: held.Text, Signer: string(held.Signer), Signature: held.Signature})
}

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

// Described is what a peer knows of what the run is: what it was set up with, and the
// description that it passes on. Safe for concurrent use.
type Described struct {
	identity transport.Identity

	mu   sync.Mutex
	own  description.Description
	held description.Signed
	met  bool // held is a member's
}

// NewDescribed signs what the peer was set up with, unless that says nothing.
func NewDescribed(identity transport.Identity, own description.Description) (*Described, error) {
	d := &Described{identity: identity, own: own}
	if len(own.Fields) == 0 {
		return d, nil
	}
	var err error
	d.held, err = description.Sign(identity, own)
	return d, err
}

// Recall passes on the description that an earlier life has kept, if it is still right and no member
// has said another.
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

// Held is the description that is passed on: that of the first member which was joined, or
// this peer's own.
func (d *Described) Held() description.Signed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// Value is what this peer was set up with, or has found with the others, in a field of that name.
func (d *Described) Value(name string) (value string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own.Value(name)
}

// meet compares what a member that is joined says of the run, and takes it over. It fails
// with a *description.MismatchError where models or work would suffer.
func (d *Described) meet(member transport.PeerID, said description.Signed, log *zap.Logger) error {
	if !said.Known() {
		return nil // it was set up without, or its build knows of none
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

// Renew takes over what the members have found that the run is: said by each of them at once, and compared with
// this one's own. What is passed on from now on is the word of who signed the description before, and of the
// first of them if that one says nothing.
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

// newest finds whose word is passed on. What a member has not signed is nobody's; and an earlier description of who
// signed the one before, which anybody can bring again, says less than this one's own.
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

// describe says what the run is to a peer that asked for it in its hello.
func (d *Described) describe(stream *framed.Stream, header wire.Header) error {
	held := d.Held()
	if header.Flags&wire.FlagDescribe == 0 || !held.Known() {
		return nil
	}
	return framed.Say(stream, 0, wire.Description{Text: held.Text, Signer: string(held.Signer), Signature: held.Signature})
}

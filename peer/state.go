package peer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// giving is this peer as a donor.
type giving struct {
	freezer freezer
	pacer   pacer
	places  places
	slices  atomic.Uint64 // given so far
}

// age is the number of gradient steps behind this peer's model, those of the donors
// from whom it was copied included.
func (p *Peer) age() uint64 { return p.counters.head.Load() + p.counters.steps.Load() }

// ageTo says before the first step how many steps lie behind the model: no fewer than
// this peer's own.
func (p *Peer) ageTo(steps uint64) {
	own := p.counters.steps.Load()
	p.counters.head.Store(max(steps, own) - own)
}

// serveState gives slices of the model to a newcomer. The trainer and exchanges go
// on meanwhile: what is given is a frozen copy.
func (p *Peer) serveState(stream seam.Stream) {
	ctx, yield := context.WithCancel(p.exchanges)
	defer yield()
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	var request wire.StateRequest
	if _, err := t.hear(&request); err != nil {
		p.malformed(t, stream, err)
		return
	}
	reason, detail := p.givable(stream.Remote(), request)
	at := &place{peer: stream.Remote(), block: p.blockOf(stream.Remote()), yield: yield}
	if reason == 0 && !p.giving.places.enter(at, p.config.Network.State.Newcomers, time.Now()) {
		reason, detail = wire.ReasonBusy, "giving its model to as many newcomers as it takes"
	}
	if reason != 0 {
		t.refuse(0, reason, detail)
		return
	}
	defer p.giving.places.leave(at)
	switch err := p.give(t, request); {
	case err == nil:
		t.finish()
	case errors.Is(err, errRetired):
		t.refuse(0, wire.ReasonBusy, err.Error())
	case errors.Is(err, ErrClosed):
		t.refuse(0, wire.ReasonClosing, "")
	case ctx.Err() != nil:
		p.log.Debug("a newcomer has made way for another", zap.String("peer", string(stream.Remote())))
	default:
		stream.Reset()
		p.log.Info("a newcomer's copy broke off", zap.String("peer", string(stream.Remote())), zap.Error(err))
	}
}

// givable finds what keeps this peer from giving its model to another. The reason is
// 0 if nothing does.
func (p *Peer) givable(to seam.PeerID, request wire.StateRequest) (wire.Reason, string) {
	if reason, detail := p.admissible(request.Run, request.Layout); reason != 0 {
		return reason, detail
	}
	if left := p.quarantine.left(to, time.Now()); left > 0 {
		return wire.ReasonQuarantine, fmt.Sprintf("for another %s", left.Round(time.Second))
	}
	if !p.arrival.open() {
		return wire.ReasonNewcomer, "still copying the model"
	}
	return 0, ""
}

// give sends the manifest, and then what the newcomer asks for until it closes.
func (p *Peer) give(t *talk, request wire.StateRequest) error {
	patience, cancel := context.WithTimeout(p.exchanges, p.config.Exchange.Stall)
	s, err := p.giving.freezer.acquire(patience, min(request.Steps, p.age()), p.freeze)
	cancel()
	if err != nil {
		return errRetired // those who read the old one are slow to go
	}
	defer p.giving.freezer.release(s)
	manifest, err := p.manifest(s)
	if err != nil {
		return fmt.Errorf("signing the manifest: %w", err)
	}
	if err := say(t, 0, manifest); err != nil {
		return err
	}
	d := donation{talk: t, snapshot: s, digest: sha256.Sum256(manifest.Append(nil))}
	for {
		var want wire.StateWant
		header, payload, err := t.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for what is wanted: %w", err)
		case header.Type != wire.TypeStateWant:
			return fmt.Errorf("waiting for what is wanted: got %v: %w", header.Type, wire.ErrType)
		}
		if err := want.Decode(payload); err != nil {
			return err
		}
		if int64(want.First)+int64(want.Count) > int64(s.slices()) {
			return fmt.Errorf("%d slices from %d on are wanted of %d: %w", want.Count, want.First, s.slices(), wire.ErrMessage)
		}
		if err := p.giveHashes(&d, want); err != nil {
			return err
		}
		if err := p.giveSlices(&d, want); err != nil {
			return err
		}
	}
}

// donation is what is given to one newcomer.
type donation struct {
	talk     *talk
	snapshot *snapshot
	digest   [wire.HashSize]byte // of the manifest
	hashes   []byte              // scratch
	values   []byte              // scratch
}

// giveHashes signs and sends the hashes of what was asked for.
func (p *Peer) giveHashes(d *donation, want wire.StateWant) error {
	d.hashes = d.hashes[:0]
	for i := range int(want.Count) {
		d.hashes = d.snapshot.appendHash(d.hashes, int(want.First)+i, &d.values)
	}
	m := wire.StateHashes{Hashes: d.hashes}
	var err error
	if m.Signature, err = p.transport.Sign(m.Statement(nil, d.digest, want.First)); err != nil {
		return fmt.Errorf("signing hashes: %w", err)
	}
	d.talk.frame = m.Append(wire.Reserve(d.talk.frame))
	return d.talk.seal(wire.TypeStateHashes, int(want.First))
}

// giveSlices sends what was asked for, at the pace that exchanges leave.
func (p *Peer) giveSlices(d *donation, want wire.StateWant) error {
	t, s := d.talk, d.snapshot
	for i := int(want.First); i < int(want.First+want.Count); i++ {
		select {
		case <-s.retired:
			return errRetired
		case <-p.closing:
			return ErrClosed
		default:
		}
		began := time.Now()
		t.frame = tensor.AppendBytes(wire.Reserve(t.frame), s.slice(i))
		if err := t.seal(wire.TypeStateSlice, i); err != nil {
			return err
		}
		p.giving.slices.Add(1)
		now := time.Now()
		pause := p.giving.pacer.pause(len(t.frame), now.Sub(began), p.underway.busy(), now)
		if pause = min(pause, t.stall/2); pause <= 0 { // a newcomer waits no longer than stall
			continue
		}
		select {
		case <-time.After(pause):
		case <-p.closing:
			return ErrClosed
		}
	}
	return nil
}

// seal sends the frame in scratch as one of a type, with the index of a slice.
func (t *talk) seal(typ wire.Type, slice int) error {
	err := wire.Seal(t.frame, wire.Header{Type: typ, Slice: uint32(slice)})
	if err == nil {
		err = t.write(t.frame)
	}
	if err != nil {
		return fmt.Errorf("sending %v %d: %w", typ, slice, err)
	}
	return nil
}

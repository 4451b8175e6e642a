package peer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Bounds of copying a model. There is none on the whole time of a copy: on a slow
// link that is long, and each frame has its own.
const (
	// copyRetry is the wait between two rounds of asking donors.
	copyRetry = 500 * time.Millisecond
	// copyRounds bounds the rounds.
	copyRounds = 20
)

// copyModel fetches the parameters of one neighbour: of the donor if it can be,
// else of another member. A peer that finds none stays out: its initial values
// would set the others back.
func (p *Peer) copyModel(donor seam.PeerID) (err error) {
	for range copyRounds {
		if err = p.fetch(donor); err == nil {
			return nil
		}
		for _, member := range p.membership.Members() {
			if member.Peer == donor || member.Peer == p.Self() || member.Steps == 0 {
				continue
			}
			if err = p.fetch(member.Peer); err == nil {
				return nil
			}
		}
		p.log.Warn("could not copy a neighbour's model; trying again", zap.Error(err))
		select {
		case <-time.After(copyRetry):
		case <-p.running.Done():
			return ErrClosed
		case <-p.closing:
			return ErrClosed
		}
	}
	return fmt.Errorf("no neighbour's model could be copied in %d rounds; join again later, or by another address: %w", copyRounds, err)
}

// fetch copies a donor's shared parameters into the replica. Nothing is changed
// unless all has arrived and its hash is right.
func (p *Peer) fetch(donor seam.PeerID) error {
	open, cancel := context.WithTimeout(p.exchanges, p.config.Exchange.Stall)
	stream, err := p.transport.Open(open, donor, seam.ProtocolState, p.config.Run)
	cancel()
	if err != nil {
		return fmt.Errorf("copying the model of %s: %w", donor, err)
	}
	stopWatch := context.AfterFunc(p.exchanges, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	manifest, values, err := p.receiveState(t)
	if err != nil {
		stream.Reset()
		return fmt.Errorf("copying the model of %s: %w", donor, err)
	}
	stream.Close()
	if err := p.replica.RestoreShared(values); err != nil {
		return fmt.Errorf("copying the model of %s: %w", donor, err)
	}
	p.counters.head.Store(manifest.Steps)
	p.flock.inherit(manifest.FlockSteps, p.membership.Members())
	p.log.Info("copied a neighbour's model", zap.String("peer", string(donor)),
		zap.Uint64("steps", manifest.Steps), zap.Int("values", len(values)))
	return nil
}

func (p *Peer) receiveState(t *talk) (wire.Manifest, tensor.Vector, error) {
	var manifest wire.Manifest
	if err := say(t, 0, wire.StateRequest{Run: p.config.Run, Layout: p.layout}); err != nil {
		return manifest, nil, err
	}
	if _, err := t.hear(&manifest); err != nil {
		return manifest, nil, err
	}
	if manifest.Values != uint64(p.replica.SharedLen()) {
		return manifest, nil, fmt.Errorf("%d values offered where %d are shared: %w", manifest.Values, p.replica.SharedLen(), wire.ErrMessage)
	}
	t.bulk()
	values := make(tensor.Vector, p.replica.SharedLen())
	hash := sha256.New()
	for at, index := 0, uint32(0); at < len(values); index++ {
		header, payload, err := t.next()
		if err != nil {
			return manifest, nil, fmt.Errorf("waiting for slice %d: %w", index, err)
		}
		n := min(int(manifest.SliceLen), len(values)-at)
		if header.Type != wire.TypeStateSlice || header.Slice != index || len(payload) != 4*n {
			return manifest, nil, fmt.Errorf("slice %d: got %v %d of %d bytes: %w", index, header.Type, header.Slice, len(payload), wire.ErrMessage)
		}
		hash.Write(payload)
		tensor.FromBytes(values[at:at+n], payload)
		at += n
	}
	if [32]byte(hash.Sum(nil)) != manifest.SHA256 {
		return manifest, nil, errors.New("the copy's hash is not the one announced")
	}
	return manifest, values, nil
}

// serveState gives a newcomer a consistent copy of the shared parameters. One
// newcomer at a time: the copy takes as much memory as the model.
func (p *Peer) serveState(stream seam.Stream) {
	stopWatch := context.AfterFunc(p.exchanges, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	var request wire.StateRequest
	if _, err := t.hear(&request); err != nil {
		p.malformed(t, stream, err)
		return
	}
	reason, detail := p.admissible(request.Run, request.Layout)
	if reason == 0 && !p.arrival.open() {
		reason, detail = wire.ReasonBusy, "still copying the model"
	}
	if reason == 0 && !p.donating.CompareAndSwap(false, true) {
		reason, detail = wire.ReasonBusy, "giving a copy to another newcomer"
	}
	if reason != 0 {
		t.refuse(0, reason, detail)
		return
	}
	err := p.sendState(t)
	p.donating.Store(false)
	if err != nil {
		stream.Reset()
		p.log.Info("a newcomer's copy broke off", zap.String("peer", string(stream.Remote())), zap.Error(err))
		return
	}
	t.finish()
}

func (p *Peer) sendState(t *talk) error {
	steps := p.counters.steps.Load()
	full := make(tensor.Vector, p.replica.Len())
	p.replica.Consistent(full)
	values := p.replica.CompactShared(full)
	manifest := wire.Manifest{
		Steps: steps + p.counters.head.Load(), FlockSteps: p.flock.total(steps),
		Values: uint64(len(values)), SliceLen: uint32(p.replica.SliceLen()), SHA256: hashOf(values, p.replica.SliceLen()),
	}
	if err := say(t, 0, manifest); err != nil {
		return err
	}
	for at, index := 0, uint32(0); at < len(values); index++ {
		n := min(p.replica.SliceLen(), len(values)-at)
		t.frame = tensor.AppendBytes(wire.Reserve(t.frame), values[at:at+n])
		if err := wire.Seal(t.frame, wire.Header{Type: wire.TypeStateSlice, Slice: index}); err != nil {
			return err
		}
		if err := t.write(t.frame); err != nil {
			return fmt.Errorf("sending slice %d: %w", index, err)
		}
		at += n
	}
	return nil
}

// hashOf is the SHA-256 of values as little-endian bytes, taken slice by slice.
func hashOf(values tensor.Vector, sliceLen int) [32]byte {
	hash := sha256.New()
	var buf []byte
	for at := 0; at < len(values); at += sliceLen {
		buf = tensor.AppendBytes(buf[:0], values[at:min(at+sliceLen, len(values))])
		hash.Write(buf)
	}
	return [32]byte(hash.Sum(nil))
}

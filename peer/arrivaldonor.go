package peer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// copyWindow is about how many bytes may be under way from one donor.
	copyWindow = 2 << 20
	// idleLook is the time between two looks for something to do, of a donor that
	// has given all that was left.
	idleLook = 20 * time.Millisecond
)

// window is how many slices may be under way from one donor: of a small state few
// enough for every donor to have some.
func (c *copying) window() int {
	share := c.slices() / (2 * c.peer.config.Network.State.Donors)
	return max(min(copyWindow/(tensor.ValueSize*c.peer.replica.SliceLen()), share, wire.MaxWanted), 2)
}

// source is one donor while slices are copied from it.
type source struct {
	talk     *talk
	asker    *asker
	manifest wire.Manifest
	digest   [wire.HashSize]byte // of the manifest
	runs     [][2]int            // asked for and not here yet: the first perhaps in part
	hashes   []byte              // of the first run; none if they have not come yet
	first    int                 // the slice of the first hash
}

// draw copies slices from one donor until there are none left to copy, or the donor
// fails. Slices that have come are kept whatever becomes of it.
func (c *copying) draw(ctx context.Context, donor seam.PeerID) error {
	p := c.peer
	open, cancel := context.WithTimeout(ctx, p.config.Exchange.Stall)
	stream, err := p.transport.Open(open, donor, seam.ProtocolState, p.config.Run)
	cancel()
	if err != nil {
		return err
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	src := source{talk: t}
	err = c.introduce(&src, donor)
	if err == nil {
		c.met(donor, src.manifest)
		err = c.pull(ctx, &src)
	}
	if err != nil {
		stream.Reset()
		return err
	}
	stream.Close()
	return nil
}

// introduce asks a donor for its manifest and checks it.
func (c *copying) introduce(src *source, donor seam.PeerID) error {
	p := c.peer
	life, age := p.flock.recordOf(donor)
	least := age - age/staleShare
	if err := say(src.talk, 0, wire.StateRequest{Run: p.config.Run, Layout: p.layout, Steps: least}); err != nil {
		return err
	}
	if _, err := src.talk.hear(&src.manifest); err != nil {
		return err
	}
	src.digest = sha256.Sum256(src.manifest.Append(nil))
	src.talk.bulk()
	return p.vet(donor, src.manifest, life, least)
}

// staleShare: the frozen copy of a donor may be older than the donor's record tells
// by one part in so many.
const staleShare = 8

// pull asks for slices and takes them until all are here.
func (c *copying) pull(ctx context.Context, src *source) error {
	t := src.talk
	src.asker = c.pool.enter(t.stream.Remote(), c.window())
	defer c.pool.leave(src.asker)
	idle := time.Now()
	for !c.pool.done() {
		asked := len(src.runs)
		src.runs = c.pool.take(src.asker, time.Now(), src.runs)
		for _, run := range src.runs[asked:] {
			if err := say(t, 0, wire.StateWant{First: uint32(run[0]), Count: uint32(run[1] - run[0])}); err != nil {
				return err
			}
		}
		if len(src.runs) > 0 {
			if err := c.receive(src); err != nil {
				return err
			}
			idle = time.Now()
			continue
		}
		if time.Since(idle) > t.stall/2 {
			return nil // the donor would think that this peer has stalled
		}
		select {
		case <-c.pool.changed:
		case <-time.After(idleLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// frame reads the frame that is due, or the refusal in its stead.
func (src *source) frame(due wire.Type, slice int) ([]byte, error) {
	header, payload, err := src.talk.await(due)
	switch {
	case err != nil:
		return nil, err
	case header.Type == wire.TypeRefuse:
		return nil, refused(payload)
	case header.Type != due || int(header.Slice) != slice:
		return nil, fmt.Errorf("waiting for %v %d: got %v %d: %w", due, slice, header.Type, header.Slice, wire.ErrType)
	}
	return payload, nil
}

// receive takes the slice that a donor has to send next, and the hashes before it if
// it is the first that was asked for together.
func (c *copying) receive(src *source) error {
	run := &src.runs[0]
	slice := run[0]
	if len(src.hashes) == 0 {
		if err := c.hear(src, slice, run[1]-slice); err != nil {
			return err
		}
	}
	payload, err := src.frame(wire.TypeStateSlice, slice)
	if err != nil {
		return err
	}
	into := c.at(slice)
	lie := func(detail string) error {
		return &DonorError{Donor: src.asker.donor, fault: ErrSlice, Detail: fmt.Sprintf("slice %d %s", slice, detail)}
	}
	if len(payload) != tensor.ValueSize*len(into) {
		return lie(fmt.Sprintf("has %d bytes where %d values are due", len(payload), len(into)))
	}
	if sha256.Sum256(payload) != [wire.HashSize]byte(src.hashes[(slice-src.first)*wire.HashSize:]) {
		return lie("has another hash")
	}
	kept := c.pool.deliver(src.asker, time.Now(), func() bool {
		tensor.FromBytes(into, payload)
		return tensor.Finite(into)
	})
	if !kept {
		return lie("has values that are not finite")
	}
	if run[0]++; run[0] == run[1] {
		src.hashes = src.hashes[:0]
		src.runs = src.runs[:copy(src.runs, src.runs[1:])]
	}
	return nil
}

// hear takes the hashes of the slices that come next.
func (c *copying) hear(src *source, first, count int) error {
	payload, err := src.frame(wire.TypeStateHashes, first)
	if err != nil {
		return err
	}
	var m wire.StateHashes
	if err := m.Decode(payload); err != nil {
		return err
	}
	if len(m.Hashes) != count*wire.HashSize {
		return fmt.Errorf("%d bytes of hashes of %d slices: %w", len(m.Hashes), count, wire.ErrMessage)
	}
	if !c.peer.transport.Verify(src.asker.donor, m.Statement(nil, src.digest, uint32(first)), m.Signature) {
		return &DonorError{Donor: src.asker.donor, fault: ErrForged, Detail: "the signature of the hashes is wrong"}
	}
	src.hashes, src.first = append(src.hashes[:0], m.Hashes...), first
	return nil
}

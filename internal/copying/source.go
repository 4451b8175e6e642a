package copying

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// windowBytes is about how many bytes may be under way from one state server.
	windowBytes = 2 << 20
	// look is the time between two checks for work, while a state server has none left.
	look = 20 * time.Millisecond
	// staleShare: the frozen copy may be older than the age in the state server's record by one part
	// in so many.
	staleShare = 8
)

// source is one state server while slices are copied from it.
type source struct {
	*copying
	stream   *framed.Stream
	asker    *asker
	manifest wire.Manifest
	digest   [wire.HashSize]byte // of the manifest
	runs     [][2]int            // asked for and not here yet: the first perhaps in part
	hashes   []byte              // of the first run; none if they have not come yet
	first    int                 // the slice of the first hash
}

// meet asks a state server for its manifest and checks it.
func (s *source) meet(server transport.PeerID) error {
	life, age := s.recordOf(server)
	least := age - age/staleShare
	if err := framed.Say(s.stream, 0, wire.StateRequest{Run: s.Run, Layout: s.Layout, Steps: least}); err != nil {
		return err
	}
	if _, err := s.stream.Receive(&s.manifest); err != nil {
		return err
	}
	s.digest = sha256.Sum256(s.manifest.Append(nil))
	s.stream.Bulk()
	return s.vet(server, life, least)
}

// vet checks a state server's manifest against this peer's layout, the identity of the
// other end, and the age in the server's record.
func (s *source) vet(server transport.PeerID, life, least uint64) error {
	m := s.manifest
	reject := func(fault Fault, format string, args ...any) error {
		return &ServerError{Server: server, Fault: fault, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case m.Server != string(server):
		return reject(Forged, "it is a manifest of %.64q", m.Server)
	case !s.Identity.Verify(server, m.Statement(nil), m.Signature):
		return reject(Forged, "the signature is wrong")
	case m.Run != s.Run:
		return reject(WrongRun, "it is of run %q", m.Run)
	case m.Layout != s.Layout:
		return reject(WrongLayout, "%s", wire.ReasonLayout.Remedy())
	case m.Values != uint64(s.Values) || int(m.SliceLen) != s.SliceLen:
		return reject(WrongLayout, "it has %d values in slices of %d, this peer's %d in slices of %d: set Exchange.SliceLen alike",
			m.Values, m.SliceLen, s.Values, s.SliceLen)
	case m.Incarnation < life:
		return reject(Stale, "it is of incarnation %d, the donor's is %d", m.Incarnation, life)
	case m.Incarnation == life && m.Steps < least:
		return reject(Stale, "%d steps lie behind it, where at least %d were asked for", m.Steps, least)
	}
	return nil
}

// fetch asks for slices and takes them until all are here.
func (s *source) fetch(ctx context.Context) error {
	s.asker = s.pool.enter(s.stream.Remote(), s.window())
	defer s.pool.leave(s.asker)
	busy := time.Now()
	for !s.pool.done() {
		asked := len(s.runs)
		s.runs = s.pool.take(s.asker, time.Now(), s.runs)
		for _, run := range s.runs[asked:] {
			if err := framed.Say(s.stream, 0, wire.StateWant{First: uint32(run[0]), Count: uint32(run[1] - run[0])}); err != nil {
				return err
			}
		}
		if len(s.runs) > 0 {
			if err := s.receive(); err != nil {
				return err
			}
			busy = time.Now()
			continue
		}
		if time.Since(busy) > s.stream.Stall/2 {
			return nil // otherwise the state server would think that this peer has stalled
		}
		select {
		case <-s.pool.changed:
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// frame reads the frame that is due, or a refusal instead.
func (s *source) frame(due wire.Type, slice int) ([]byte, error) {
	header, payload, err := s.stream.Await(due)
	switch {
	case err != nil:
		return nil, err
	case header.Type == wire.TypeRefuse:
		return nil, wire.Refused(payload)
	case header.Type != due || int(header.Slice) != slice:
		return nil, fmt.Errorf("waiting for %v %d: got %v %d: %w", due, slice, header.Type, header.Slice, wire.ErrType)
	}
	return payload, nil
}

// receive takes the slice that a state server is to send next, and before the first slice
// of a request their hashes.
func (s *source) receive() error {
	run := &s.runs[0]
	slice := run[0]
	if len(s.hashes) == 0 {
		if err := s.receiveHashes(slice, run[1]-slice); err != nil {
			return err
		}
	}
	payload, err := s.frame(wire.TypeStateSlice, slice)
	if err != nil {
		return err
	}
	into := s.values[slice*s.SliceLen : min((slice+1)*s.SliceLen, len(s.values))]
	wrong := func(detail string) error {
		return &ServerError{Server: s.asker.server, Fault: WrongSlice, Detail: fmt.Sprintf("slice %d %s", slice, detail)}
	}
	if len(payload) != tensor.ValueSize*len(into) {
		return wrong(fmt.Sprintf("has %d bytes where %d values are due", len(payload), len(into)))
	}
	if sha256.Sum256(payload) != [wire.HashSize]byte(s.hashes[(slice-s.first)*wire.HashSize:]) {
		return wrong("has another hash")
	}
	kept := s.pool.deliver(s.asker, time.Now(), func() bool {
		tensor.FromBytes(into, payload)
		return tensor.Finite(into)
	})
	if !kept {
		return wrong("has values that are not finite")
	}
	if run[0]++; run[0] == run[1] {
		s.hashes = s.hashes[:0]
		s.runs = s.runs[:copy(s.runs, s.runs[1:])]
	}
	return nil
}

// receiveHashes takes the hashes of the slices that come next.
func (s *source) receiveHashes(first, count int) error {
	payload, err := s.frame(wire.TypeStateHashes, first)
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
	if !s.Identity.Verify(s.asker.server, m.Statement(nil, s.digest, uint32(first)), m.Signature) {
		return &ServerError{Server: s.asker.server, Fault: Forged, Detail: "the signature of the hashes is wrong"}
	}
	s.hashes, s.first = append(s.hashes[:0], m.Hashes...), first
	return nil
}

package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
)

// maxReading bounds the micro-batches that are read at once, before it is known whether there is room for them, and
// maxReadingOf those of one member.
const (
	maxReading   = 16
	maxReadingOf = 2
)

// receiver answers members that send micro-batches, or want to know something.
type receiver struct {
	stage   *stage
	copies  *copies
	reading *places // for micro-batches that are being read
}

func newReceiver(s *stage, c *copies) *receiver {
	return &receiver{stage: s, copies: c, reading: newPlaces(maxReading, maxReadingOf)}
}

// errShape: what a member sends does not fit the stage.
var errShape = fmt.Errorf("it does not fit this stage: %w", wire.ErrMessage)

// serve answers a member that opens a stream.
func (r *receiver) serve(ctx context.Context, s *framed.Stream) error {
	var m wire.Batch
	if _, err := s.Receive(&m); err != nil {
		return err
	}
	switch m.Kind {
	case wire.BatchLoad:
		return r.finish(s, outcome{answer: stages.NoRoom, load: r.stage.load()})
	case wire.BatchKeep, wire.BatchFetch:
		return r.copies.serve(s, m, r.stage.service.Records())
	}
	if !r.stage.members.before(r.stage.service.Records(), s.Remote()) || int(m.Stage) != r.stage.with.Stage+1 {
		s.Refuse(0, wire.ReasonProtocol, fmt.Sprintf("this member has stage %d, and takes what members of the stage before have, or rows", r.stage.with.Stage+1))
		return nil
	}
	parcel, err := r.read(s, m)
	if errors.Is(err, errNoRoom) {
		return r.finish(s, outcome{answer: stages.NoRoom, load: r.stage.load()})
	}
	if err != nil {
		return err
	}
	o, err := r.stage.accept(ctx, s.Remote(), parcel)
	if err != nil {
		return err
	}
	return r.finish(s, o)
}

func (r *receiver) finish(s *framed.Stream, o outcome) error {
	err := tell(s, o)
	if err == nil {
		s.Finish()
	}
	return err
}

var errNoRoom = errors.New("too many micro-batches come at once")

// read reads a micro-batch for this stage.
func (r *receiver) read(s *framed.Stream, m wire.Batch) (got parcel, err error) {
	codec, known := quant.ByID(m.Codec)
	examples, in := int(m.Examples), r.stage.model.In().Len()
	if !known || codec.Lattice() || examples < 1 || examples > r.stage.with.Examples || int(m.Values) != examples*in || !r.fits(m) {
		return got, fmt.Errorf("%d examples of %d values with %d targets, coded as %d: %w", m.Examples, m.Values, m.Targets, m.Codec, errShape)
	}
	if !r.reading.take(s.Remote()) {
		return got, errNoRoom
	}
	defer r.reading.free(s.Remote())
	got = parcel{id: stages.ID{Source: transport.PeerID(m.Source), Number: m.Number, Asks: m.Kind == wire.BatchOutputs}, examples: examples}
	if got.values, err = receive(s, codec, int(m.Values)); err == nil {
		got.targets, err = receive(s, raw(), int(m.Targets))
	}
	return got, err
}

// fits tells whether a micro-batch has as many targets as are due: none if its outputs are wanted.
func (r *receiver) fits(m wire.Batch) bool {
	due := int(m.Examples) * r.stage.with.Plan.Loss.Terms(r.stage.with.Plan.Whole.Out())
	if m.Kind == wire.BatchOutputs {
		due = 0
	}
	return int(m.Targets) == due
}

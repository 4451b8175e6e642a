package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	*run
	stages  []*stage
	members *members
	rows    *sender // of this member
	asks    *sender
	copies  *copies
	rounds  *rounds
	reading *places // for micro-batches that are being read
}

func newReceiver(p *Pipeline) *receiver {
	return &receiver{run: p.run, stages: p.steps.stages, members: p.members, rows: p.rows, asks: p.asks, copies: p.copies, rounds: p.rounds, reading: newPlaces(maxReading, maxReadingOf)}
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
		return r.finish(s, outcome{answer: stages.NoRoom, load: r.stages[0].load()})
	case wire.BatchRound:
		o, err := r.rounds.receive(s.Remote(), m)
		if err != nil {
			return err
		}
		return r.finish(s, o)
	case wire.BatchKeep, wire.BatchFetch:
		return r.copies.serve(s, m, r.service.Records())
	}
	at := slices.IndexFunc(r.stages, func(o *stage) bool { return o.index == int(m.Stage)-1 })
	if at < 0 || !r.members.before(r.service.Records(), s.Remote(), int(m.Stage)-1) {
		s.Refuse(0, wire.ReasonProtocol, fmt.Sprintf("this member has stage %d, and takes what members of the stage before have, or rows, unless these stay with their member", r.with.Stage+1))
		return nil
	}
	stage := r.stages[at]
	parcel, err := r.read(s, stage, m)
	if errors.Is(err, errNoRoom) {
		return r.finish(s, outcome{answer: stages.NoRoom, load: stage.load()})
	}
	home := r.with.Plan.ends && stage.index > 0 && r.with.Stage == 0
	if home && err == nil && !r.labelled(&parcel) {
		return r.finish(s, outcome{answer: stages.GivenUp, load: stage.load()})
	}
	if err != nil {
		return err
	}
	o, err := stage.accept(ctx, s.Remote(), parcel)
	if err != nil {
		return err
	}
	if home && parcel.id.Asks {
		r.asks.keep(parcel.id, o.values)
		o.values = coded{codec: o.values.codec}
	}
	return r.finish(s, o)
}

// labelled gives a micro-batch of this member's rows, which has come back for its last stage, the targets that have stayed here. It
// is false if none such is on its way.
func (r *receiver) labelled(p *parcel) (is bool) {
	from := r.rows
	if p.id.Asks {
		from = r.asks
	}
	p.targets, is = from.home(p.id, p.examples)
	return is
}

func (r *receiver) finish(s *framed.Stream, o outcome) error {
	err := writeOutcome(s, o)
	if err == nil {
		s.Finish()
	}
	return err
}

var errNoRoom = errors.New("too many micro-batches come at once")

// read reads a micro-batch for a stage.
func (r *receiver) read(s *framed.Stream, stage *stage, m wire.Batch) (got parcel, err error) {
	codec, known := quant.ByID(m.Codec)
	examples, in := int(m.Examples), stage.model.In().Len()
	if !known || codec.Lattice() || examples < 1 || examples > r.with.Examples || int(m.Values) != examples*in || !r.fits(m) {
		return got, fmt.Errorf("%d examples of %d values with %d targets, coded as %d: %w", m.Examples, m.Values, m.Targets, m.Codec, errShape)
	}
	got = parcel{id: stages.ID{Source: transport.PeerID(m.Source), Number: m.Number, Asks: m.Kind == wire.BatchOutputs}, examples: examples}
	if (m.Round > 0) != (r.round(got.id) > 0) {
		return got, errRounds
	}
	if m.Round > 0 {
		got.id.Round = m.Round - 1
	}
	if !r.reading.take(s.Remote()) {
		return got, errNoRoom
	}
	defer r.reading.free(s.Remote())
	if got.values, err = receive(s, codec, int(m.Values)); err == nil {
		got.targets, err = receive(s, raw(), int(m.Targets))
	}
	return got, err
}

// fits tells whether a micro-batch has as many targets as are due: none if its outputs are wanted, or targets stay with the rows.
func (r *receiver) fits(m wire.Batch) bool {
	due := int(m.Examples) * r.with.Plan.Loss.Terms(r.with.Plan.Whole.Out())
	if m.Kind == wire.BatchOutputs || r.with.Plan.ends {
		due = 0
	}
	return int(m.Targets) == due
}

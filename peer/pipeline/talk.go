package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
)

const (
	// maxReading bounds the micro-batches that are read at once, before it is known whether there is room for them.
	maxReading = 8
	// longest bounds the wait for what becomes of a micro-batch. Who waits may give it up sooner.
	longest = 20 * time.Minute
)

// parcel is a micro-batch on its way to another member.
type parcel struct {
	id              stages.ID
	examples        int
	values, targets coded
	back            int // how many values come back if it is computed
}

// outcome is what becomes of it there.
type outcome struct {
	answer stages.Answer
	load   stages.Load
	loss   float64
	values coded
}

// errShape: what a member sends does not fit the stage.
var errShape = fmt.Errorf("it does not fit this stage: %w", wire.ErrMessage)

// say sends a parcel to a member of a stage, and waits for what becomes of it.
func say(s *framed.Stream, stage int, p parcel) (o outcome, err error) {
	m := wire.Batch{
		Stage: uint8(stage + 1), Codec: p.values.codec.ID(), Source: string(p.id.Source), Number: p.id.Number,
		Examples: uint32(p.examples), Values: uint32(p.values.n), Targets: uint32(p.targets.n),
	}
	if p.id.Asks {
		m.Kind = wire.BatchOutputs
	}
	if err = framed.Say(s, 0, m); err == nil {
		err = errors.Join(p.values.send(s), p.targets.send(s))
	}
	if err != nil {
		return o, err
	}
	stall := s.Stall
	s.Stall = longest
	o, err = hear(s, p.values.codec)
	s.Stall = stall
	due := 0
	if o.answer == stages.Done {
		due = p.back
	}
	if err == nil && o.values.n != due {
		err = fmt.Errorf("%d values come back, where %d are due: %w", o.values.n, due, wire.ErrMessage)
	}
	if err == nil {
		o.values, err = receive(s, o.values.codec, o.values.n)
	}
	return o, err
}

// hear reads an outcome, without its values.
func hear(s *framed.Stream, codec quant.Codec) (o outcome, err error) {
	var m wire.Outcome
	_, err = s.Receive(&m)
	return outcome{
		answer: stages.Answer(m.Answer), load: stages.Load{Waiting: int(min(m.Waiting, math.MaxInt32)), Each: time.Duration(m.Each)},
		loss: m.Loss, values: coded{codec: codec, n: int(m.Values)},
	}, err
}

// tell answers a parcel.
func tell(s *framed.Stream, o outcome) error {
	m := wire.Outcome{
		Answer: uint8(o.answer), Waiting: uint32(o.load.Waiting), Each: uint64(max(o.load.Each, 0)), Loss: o.loss, Values: uint32(o.values.n),
	}
	if err := framed.Say(s, 0, m); err != nil {
		return err
	}
	return o.values.send(s)
}

// serve answers a member that opens a stream.
func (p *Pipeline) serve(ctx context.Context, s *framed.Stream) error {
	var m wire.Batch
	if _, err := s.Receive(&m); err != nil {
		return err
	}
	switch m.Kind {
	case wire.BatchLoad:
		return p.finish(s, outcome{answer: stages.NoRoom, load: p.load()})
	case wire.BatchKeep, wire.BatchFetch:
		return p.copies.serve(s, m, p.service.Records())
	}
	if !p.senders(s.Remote()) || int(m.Stage) != p.with.Stage+1 {
		s.Refuse(0, wire.ReasonProtocol, fmt.Sprintf("this member has stage %d, and takes what members of the stage before have, or rows", p.with.Stage+1))
		return nil
	}
	parcel, err := p.read(s, m)
	if errors.Is(err, errNoRoom) {
		return p.finish(s, outcome{answer: stages.NoRoom, load: p.load()})
	}
	if err != nil {
		return err
	}
	o, err := p.accept(ctx, s.Remote(), parcel)
	if err != nil {
		return err
	}
	return p.finish(s, o)
}

func (p *Pipeline) finish(s *framed.Stream, o outcome) error {
	err := tell(s, o)
	if err == nil {
		s.Finish()
	}
	return err
}

var errNoRoom = errors.New("too many micro-batches come at once")

// read reads a micro-batch for this stage.
func (p *Pipeline) read(s *framed.Stream, m wire.Batch) (got parcel, err error) {
	codec, known := quant.ByID(m.Codec)
	examples, in := int(m.Examples), p.model.In().Len()
	if !known || codec.Lattice() || examples < 1 || examples > p.with.Examples || int(m.Values) != examples*in || !p.fits(m) {
		return got, fmt.Errorf("%d examples of %d values with %d targets, coded as %d: %w", m.Examples, m.Values, m.Targets, m.Codec, errShape)
	}
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	default:
		return got, errNoRoom
	}
	got = parcel{id: stages.ID{Source: transport.PeerID(m.Source), Number: m.Number, Asks: m.Kind == wire.BatchOutputs}, examples: examples}
	if got.values, err = receive(s, codec, int(m.Values)); err == nil {
		got.targets, err = receive(s, raw(), int(m.Targets))
	}
	return got, err
}

// fits tells whether a micro-batch has as many targets as are due: none if its outputs are wanted.
func (p *Pipeline) fits(m wire.Batch) bool {
	due := int(m.Examples) * p.with.Plan.Loss.Terms(p.with.Plan.Whole.Out())
	if m.Kind == wire.BatchOutputs {
		due = 0
	}
	return int(m.Targets) == due
}

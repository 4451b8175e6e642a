package pipeline

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
)

// longest bounds the wait for what becomes of a micro-batch. Who waits may give it up sooner.
const longest = 20 * time.Minute

// parcel is a micro-batch on its way to another member.
type parcel struct {
	id              stages.ID
	round           uint64 // as it travels
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

// request sends a parcel to a member of a stage, and waits for what becomes of it.
func request(s *framed.Stream, stage int, p parcel) (o outcome, err error) {
	m := wire.Batch{
		Stage: uint8(stage + 1), Codec: p.values.codec.ID(), Source: string(p.id.Source), Number: p.id.Number, Round: p.round,
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
	o, err = readOutcome(s, p.values.codec)
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

// readOutcome reads an outcome, without its values.
func readOutcome(s *framed.Stream, codec quant.Codec) (o outcome, err error) {
	var m wire.Outcome
	_, err = s.Receive(&m)
	return outcome{
		answer: stages.Answer(m.Answer), load: stages.Load{Waiting: int(min(m.Waiting, math.MaxInt32)), Each: time.Duration(m.Each)},
		loss: m.Loss, values: coded{codec: codec, n: int(m.Values)},
	}, err
}

// writeOutcome answers a parcel.
func writeOutcome(s *framed.Stream, o outcome) error {
	m := wire.Outcome{
		Answer: uint8(o.answer), Waiting: uint32(o.load.Waiting), Each: uint64(max(o.load.Each, 0)), Loss: o.loss, Values: uint32(o.values.n),
	}
	if err := framed.Say(s, 0, m); err != nil {
		return err
	}
	return o.values.send(s)
}

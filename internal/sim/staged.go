package sim

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// staged is a peer's part in a pipeline: it sends micro-batches of its own rows, and computes those that reach its stage.
type staged struct {
	peer   *peer
	source *stages.Source
	holder *stages.Holder
	own    map[stages.ID]Parcel
	held   map[stages.Key]*held
	looks  time.Duration // when the machines are asked next what is overdue; 0: not at all
	came   time.Duration // when it was there
	desk   desk
	keeps  keeps
	rounds rounds
}

// held is a micro-batch at a member.
type held struct {
	id     stages.ID
	in     Parcel
	flow   Flow      // nil before it is computed
	params []float32 // of its forward pass
	out    Parcel    // what goes on to the next stage
	back   Parcel    // what goes back
	errors []float32 // over its outputs
	loss   float64
}

// wordBytes is about what a message of the pipeline takes beside its values.
const wordBytes = wire.HeaderSize + 64

// newStaged makes the part of a peer that holds a stage. Numbers are far from those of an earlier life.
func newStaged(p *peer) *staged {
	of, first := p.world.stages(), p.incarnation<<40
	config := stages.Config{Stage: p.stage, Stages: of, Batch: p.world.config.Pipeline.Batch, Rounds: p.world.config.Pipeline.Rounds, First: first}
	holder, _ := stages.NewHolder(config) // fails only for what validate refuses
	source := stages.NewSource(p.id, 2*of+1, first)
	if config.Rounds {
		source.PerRound = config.Batch
	}
	s := &staged{peer: p, source: source, holder: holder, own: map[stages.ID]Parcel{}, held: map[stages.Key]*held{}, came: p.now()}
	s.desk, s.keeps.staged, s.rounds = desk{staged: s, grad: make([]float32, p.replica.Len())}, s, newRounds(s, config)
	return s
}

// idle tells that nothing is to be done here any more, or yet.
func (s *staged) idle() bool { return s.peer.gone || s.peer.arriving || s.peer.world.over }

// look tells the machines who is there, and sends rows.
func (s *staged) look() {
	w, p := s.peer.world, s.peer
	if s.idle() {
		return
	}
	next, first := w.chained(p.id, p.stage, w.members(p.stage+1)), w.chained(p.id, p.stage, w.members(0))
	before := func(id topology.PeerID) bool {
		from := w.peers[w.index[id]]
		return w.overlays[from.stage].View().Has(id) && (p.stage == 0 || from.stage == p.stage-1)
	}
	s.act(s.holder.Members(p.now(), next, before))
	s.send(s.source.Members(p.now(), first))
	s.rounds.look()
	s.feed()
}

// feed sends rows while there is room.
func (s *staged) feed() {
	for !s.idle() && s.source.Room() > 0 {
		rows, err := s.peer.world.config.Pipeline.Work.Rows(s.peer.index)
		if err != nil {
			s.peer.trainer.failed(fmt.Errorf("rows of this peer: %w", err))
			return
		}
		id, do := s.source.Make(s.peer.now())
		s.own[id] = rows
		s.send(do)
	}
	s.rounds.goOn()
	s.watch()
}

// send does what the schedule of this peer's rows asks for.
func (s *staged) send(do []stages.Action) {
	for _, a := range do {
		switch a.Kind {
		case stages.Send:
			s.forward(a, s.own[a.ID])
		case stages.Release:
			delete(s.own, a.ID)
		}
	}
}

// act does what the schedule of the stage asks for.
func (s *staged) act(do []stages.Action) {
	for _, a := range do {
		h := s.held[a.At]
		switch a.Kind {
		case stages.ComputeForward, stages.ComputeBack:
			s.desk.compute(a)
		case stages.Step:
			s.peer.world.queue.After(0, s.desk.step)
		case stages.Send:
			s.forward(a, h.out)
		case stages.Reply:
			s.reply(a, h)
		case stages.Release:
			if h.flow != nil {
				s.desk.flows = append(s.desk.flows, h.flow)
			}
			delete(s.held, a.At)
		}
	}
}

// carry hands bytes to another peer, or to this one, unless one of both goes meanwhile. What the link cannot carry is lost: then it
// is false.
func (s *staged) carry(to topology.PeerID, bytes int, do func(to *staged)) bool {
	w, p := s.peer.world, s.peer
	other := w.peers[w.index[to]]
	arrive := func() {
		if !p.gone && !other.gone && other.staged != nil && !other.staged.idle() {
			do(other.staged)
		}
	}
	if other == p {
		w.queue.After(0, arrive)
		return true
	}
	l := w.line(p.index, other.index)
	if !l.cut {
		p.sent(other.index, bytes)
		l.arrive(l.carry(wayOf(p.index, other.index), bytes), arrive)
	}
	return !l.cut
}

// forward sends a micro-batch on.
func (s *staged) forward(a stages.Action, what Parcel) {
	from := s.peer.id
	s.carry(a.To, what.Bytes+wordBytes, func(to *staged) {
		key := stages.Key{From: from, Number: a.Number}
		h := to.held[key]
		if h == nil {
			h = &held{id: a.ID, in: what}
			to.held[key] = h
		}
		before := to.holder.Counts().Came
		do := to.holder.Forward(to.peer.now(), from, a.Number, a.ID)
		to.act(do)
		if to.holder.Counts().Came == before && h.flow == nil && len(do) > 0 { // refused
			delete(to.held, key)
		}
		to.watch()
	})
}

// reply answers who sent a micro-batch.
func (s *staged) reply(a stages.Action, h *held) {
	from, bytes := s.peer.id, wordBytes
	var back Parcel
	loss := 0.0
	if a.Answer == stages.Done {
		back, loss = h.back, h.loss
		bytes += back.Bytes
	}
	toRows := s.peer.stage == 0
	s.carry(a.To, bytes, func(to *staged) {
		now := to.peer.now()
		if toRows {
			_, do := to.source.Answer(now, from, a.Number, a.Answer, a.Load)
			to.send(do)
			to.feed()
			return
		}
		at, do := to.holder.Answer(now, from, a.Number, a.Answer, a.Load)
		if waits := to.held[at]; waits != nil {
			waits.errors, waits.loss = back.Values, loss
		}
		to.act(do)
		to.watch()
	})
}

// watch asks the machines what is overdue when it may be.
func (s *staged) watch() {
	q := &s.peer.world.queue
	next, any := s.holder.Next(q.Now())
	if rows, waits := s.source.Next(q.Now()); waits && (!any || rows < next) {
		next, any = rows, true
	}
	if !any || s.idle() || s.looks > q.Now() && s.looks <= next {
		return
	}
	next = max(next, q.Now()+minStep)
	s.looks = next
	q.After(next-q.Now(), func() {
		if s.looks != next || s.idle() {
			return
		}
		s.looks = 0
		s.act(s.holder.Tick(q.Now()))
		s.send(s.source.Tick(q.Now()))
		s.feed()
	})
}

// counts are those of the stage at this peer.
func (s *staged) counts() StageCounts {
	until := s.peer.now()
	if s.peer.world.over {
		until = s.peer.world.ended
	}
	c := StageCounts{Counts: s.holder.Counts(), Here: uint64(len(s.held)), Busy: s.desk.busy, Present: until - s.came, Copies: s.keeps.copies}
	if s.desk.computing {
		c.Busy += until - s.desk.began
	}
	return c
}

// rows are those of its own micro-batches.
func (s *staged) rows() StageCounts {
	return StageCounts{Counts: s.source.Counts(), Here: uint64(len(s.own))}
}

// close counts what has happened, when the peer goes.
func (s *staged) close() {
	past := s.peer.world.past
	past[s.peer.stage].add(s.counts())
	past[len(past)-1].add(s.rows())
}

package sim

// keepEvery is how many steps a peer that has its stage alone makes until it gives a copy to one of another stage, as in
// package pipeline.
const keepEvery = 50

// keeps are copies of other stages' parameters that a peer keeps for who takes such a stage when nobody holds it any more.
type keeps struct {
	steps  int // of this life
	copies int // that it gave
	kept   map[int]kept
}

// kept is a copy, and the steps of all when it was made.
type kept struct {
	at     uint64
	values []float32
}

// give gives a copy of the stage to a member of another one, if nobody else has it and it is time.
func (s *staged) give() {
	w, p := s.peer.world, s.peer
	if s.steps%keepEvery != 0 || s.idle() || len(w.members(p.stage)) > 1 {
		return
	}
	for from := 1; from < w.config.stages(); from++ {
		others := w.members((p.stage + from) % w.config.stages())
		if len(others) == 0 {
			continue
		}
		full := make([]float32, p.replica.Len())
		p.replica.Consistent(full)
		copied := kept{w.made, p.replica.CompactShared(full)}
		s.copies++
		s.carry(others[s.copies%len(others)], wordBytes+4*len(copied.values), func(to *staged) {
			if to.kept == nil {
				to.kept = map[int]kept{}
			}
			to.kept[p.stage] = copied
		})
		return
	}
}

// fetch copies the newest copy of a stage that nobody holds, if a member keeps one, and calls done after that.
func (n *joiner) fetch(done func()) (has bool) {
	w := n.world
	var newest kept
	var from *peer
	for _, p := range w.peers {
		if p.staged == nil || p.staged.idle() {
			continue
		}
		if k := p.staged.kept[n.stage]; k.values != nil && (from == nil || k.at > newest.at) {
			newest, from = k, p
		}
	}
	if from == nil {
		return false
	}
	bytes := wordBytes + 4*len(newest.values)
	from.sent(n.index, bytes)
	l := w.line(from.index, n.index)
	l.arrive(l.carry(wayOf(from.index, n.index), bytes), func() {
		if !n.gone && n.replica.RestoreShared(newest.values) == nil {
			n.copied = true
		}
		done()
	})
	return true
}

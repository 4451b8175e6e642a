package sim

import "github.com/seed-97356399/murmuration/topology"

// rounds are how far a member of a Pipeline with Rounds knows the others to be. The zero value is of the first round.
type rounds struct {
	round uint64
	said  bool                       // that this member has back what it made
	rest  map[topology.PeerID]uint64 // how many rounds each has said that of
}

// next begins a round, and returns its number.
func (r *rounds) next() uint64 {
	r.round++
	r.said = false
	return r.round
}

// rested tells everybody, once in a round, that this member's micro-batches are back.
func (s *staged) rested() {
	w, from, over := s.peer.world, s.peer.id, s.round+1
	if s.said || !s.source.Rests() {
		return
	}
	s.said = true
	for stage := range w.config.stages() {
		for _, id := range w.members(stage) {
			s.carry(id, wordBytes, func(to *staged) {
				if to.rest == nil {
					to.rest = map[topology.PeerID]uint64{}
				}
				to.rest[from] = max(to.rest[from], over)
				to.roundOver()
			})
		}
	}
}

// roundOver tells the schedule that a round is over, if all members have said so.
func (s *staged) roundOver() {
	w := s.peer.world
	if !w.config.Pipeline.Rounds || s.idle() {
		return
	}
	for stage := range w.config.stages() {
		for _, id := range w.members(stage) {
			if s.rest[id] <= s.round {
				return
			}
		}
	}
	s.act(s.holder.RoundOver(s.peer.now(), s.round))
}

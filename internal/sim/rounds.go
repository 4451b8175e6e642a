package sim

import "github.com/seed-97356399/murmuration/topology"

// rounds are how far a member of a Pipeline with Rounds knows the others to be.
type rounds struct {
	*staged
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
func (r *rounds) rested() {
	w, from, over := r.peer.world, r.peer.id, r.round+1
	if r.said || !r.source.Rests() {
		return
	}
	r.said = true
	for stage := range w.stages() {
		for _, id := range w.members(stage) {
			r.carry(id, wordBytes, func(to *staged) {
				if to.rounds.rest == nil {
					to.rounds.rest = map[topology.PeerID]uint64{}
				}
				to.rounds.rest[from] = max(to.rounds.rest[from], over)
				to.rounds.over()
			})
		}
	}
}

// over tells the schedule that a round is over, if all members have said so.
func (r *rounds) over() {
	w := r.peer.world
	if !w.config.Pipeline.Rounds || r.idle() {
		return
	}
	for stage := range w.stages() {
		for _, id := range w.members(stage) {
			if r.rest[id] <= r.round {
				return
			}
		}
	}
	r.act(r.holder.RoundOver(r.peer.now(), r.round))
}

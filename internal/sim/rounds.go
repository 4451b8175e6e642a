package sim

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/topology"
)

// rounds are those of a member of a Pipeline with Rounds. Without, the machine is nil.
type rounds struct {
	*staged
	machine *stages.Rounds
}

func newRounds(s *staged, config stages.Config) rounds {
	r := rounds{staged: s}
	if config.Rounds {
		r.machine = stages.NewRounds(s.peer.id, config.Stage, config.Stages, math.MaxInt64) // nobody is there and does nothing
	}
	return r
}

// look tells the machine who is there.
func (r *rounds) look() {
	if r.machine == nil {
		return
	}
	others := map[topology.PeerID]int{}
	for stage := range r.peer.world.stages() {
		for _, id := range r.peer.world.members(stage) {
			if id != r.peer.id {
				others[id] = stage
			}
		}
	}
	r.machine.Members(r.peer.now(), others)
}

// begin begins a step. It is false if nothing can be computed in it, since the parameters are yet to come.
func (r *rounds) begin() bool {
	p := r.peer
	version := p.trainer.version
	if version == 0 && p.counts.Steps == 0 && !p.copied && p.world.made == 0 {
		version = 1
	}
	r.machine.Begin(p.now(), version)
	return version > 0
}

// goOn does what is due of rounds.
func (r *rounds) goOn() {
	if r.machine == nil || r.idle() {
		return
	}
	now, from := r.peer.now(), r.peer.id
	if round, makes, entered := r.machine.Enter(now); entered {
		if makes {
			r.source.Round(round)
		}
		r.act(r.holder.Enter(now, round))
		r.feed() // which comes back here
		return
	}
	if r.source.Rests() {
		r.machine.Rest(now)
	}
	if round, over := r.machine.Over(now); over {
		r.act(r.holder.RoundOver(now, round))
	}
	to, report := r.machine.ToSend(now)
	for _, id := range to {
		sent := r.carry(id, wordBytes, func(to *staged) {
			r.machine.Sent(r.peer.now(), id, report, to.rounds.machine.Received(to.peer.now(), from, report))
			to.rounds.goOn()
		})
		if !sent {
			r.machine.Sent(now, id, report, false)
		}
	}
}

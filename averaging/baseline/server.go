package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is what the server does with pushes.

// worker is a peer that the server works for.
type worker struct {
	id      topology.PeerID
	clock   uint64 // its own count of pushes that were answered
	strange bool   // that is not known yet
	state   service
	taken   uint64        // a bit for each part of its push that was taken in, or is being
	parts   int           // of its push, that have ended
	of      int           // so many parts that its push has
	active  time.Duration // when it last began something
	waits   time.Duration // since when it waits at the gate
	samples int
	speed   float64
	unsent  bool // some of the parameters that it was granted have not arrived
}

// service is where the server knows a worker to be.
type service uint8

const (
	away    service = iota // computes
	coming                 // pushes
	arrived                // its push is in an update to be made, or in the next together
	held                   // waits at the gate
	leaving                // is sent the parameters
)

func (m *ParamServer) followers() uint64 { return uint64(len(m.workers)) }

// enthroned implements duties: this peer serves from the copy that it has.
func (m *ParamServer) enthroned() {
	m.retire()
	if !m.resting {
		m.employ(m.self)
	}
	for id := range m.others {
		m.employ(id).strange = m.parent != 0
	}
	if m.waiting {
		m.contribute(m.samples)
	}
}

// deposed implements duties.
func (m *ParamServer) deposed() { m.retire() }

// retire forgets all that this peer knows as a server or worker, except its model.
func (m *ParamServer) retire() {
	m.abort("")
	m.do(averaging.Action{Kind: averaging.Clear})
	for _, w := range m.workers {
		m.gate.Forget(w.id)
	}
	m.board, m.workers, m.due, m.sleepers = Board{}, nil, nil, nil
	m.grant, m.astray, m.updating = grant{}, false, nil
}

// employ takes a worker in, which counts as one of the slowest.
func (m *ParamServer) employ(id topology.PeerID) *worker {
	i := m.hired(id)
	if i < 0 {
		i = len(m.workers)
		m.workers = append(m.workers, worker{id: id, active: m.now})
		m.board.Add(id, m.board.Pushes(m.board.Slowest()))
	}
	return &m.workers[i]
}

func (m *ParamServer) hired(id topology.PeerID) int {
	return slices.IndexFunc(m.workers, func(w worker) bool { return w.id == id })
}

// dismiss goes on without a worker.
func (m *ParamServer) dismiss(id topology.PeerID) {
	i := m.hired(id)
	if i < 0 || !m.leads() {
		return
	}
	m.abort(id)
	m.fire(i)
}

// fire takes a worker out of all lists.
func (m *ParamServer) fire(i int) {
	id := m.workers[i].id
	m.workers = slices.Delete(m.workers, i, i+1)
	m.board.Remove(id)
	m.gate.Forget(id)
	m.due = slices.DeleteFunc(m.due, func(x topology.PeerID) bool { return x == id })
}

// contribute adds the server's own gradient.
func (m *ParamServer) contribute(samples int) {
	w := m.employ(m.self)
	w.samples, w.speed = samples, m.speed.value
	m.do(averaging.Action{Kind: averaging.Load, Add: true})
	m.arrive(w)
}

// offeredPush answers a worker that wants to push.
func (m *ParamServer) offeredPush(e averaging.Event) {
	i := m.hired(e.Peer)
	switch {
	case !m.leads():
		m.refuse(e, averaging.WrongRole)
		return
	case i < 0 || m.workers[i].strange || e.Transfer.Round != m.workers[i].clock+1 || !fits(e.Transfer):
		m.refuse(e, averaging.Round)
		return
	}
	w := &m.workers[i]
	if w.state == arrived || w.state == held {
		m.refuse(e, averaging.Round)
		return
	}
	if w.state != coming {
		w.state, w.parts, w.taken, w.of, w.active = coming, 0, 0, e.Transfer.Parts, m.now
	}
	part := uint64(1) << e.Transfer.Part               // MaxParts fits
	if w.taken&part != 0 || e.Transfer.Parts != w.of { // it came whole, and the answer was lost
		m.refuse(e, averaging.Round)
		return
	}
	w.taken |= part
	m.accept(e)
}

// fits tells whether a part is one that a machine of this kind can have sent, whatever its
// Config.Parts.
func fits(t averaging.Transfer) bool {
	return t.Parts <= MaxParts && t.Part >= 0 && t.Part < t.Parts
}

// received is the end of a part of a push: in, or as far as it came.
func (m *ParamServer) received(f flight) {
	i := m.hired(f.peer)
	if !m.leads() || i < 0 || f.transfer.From != averaging.Gradient {
		return
	}
	w := &m.workers[i]
	if w.state != coming || f.transfer.Round != w.clock+1 {
		return
	}
	w.parts++
	if w.parts == w.of {
		m.arrive(w)
	}
}

// arrive counts a push.
func (m *ParamServer) arrive(w *worker) {
	w.state, w.waits, w.active = arrived, m.now, m.now
	w.clock++
	m.board.Pushed(w.id, m.now)
	m.due = append(m.due, w.id)
}

// serve does what is due.
func (m *ParamServer) serve() {
	if !m.leads() || m.busy || len(m.due) == 0 {
		return
	}
	if m.gate.Together() && !m.complete() {
		return
	}
	update := averaging.Action{Kind: averaging.Update, Progress: m.progress}
	if !m.gate.Together() {
		update.Weight, update.Share = m.usual(), 1/float64(max(len(m.workers), 1))
	}
	m.updating = append(m.updating[:0], m.due...)
	m.due = m.due[:0]
	m.busy = true
	m.do(update)
}

// complete tells whether all have pushed.
func (m *ParamServer) complete() bool {
	return !slices.ContainsFunc(m.workers, func(w worker) bool { return w.state != arrived })
}

// usual is the mean number of samples of the pushes of an update. Dividing by that, the
// update is as large as those that each would make by itself together, whichever parts
// of a push happen to be in it. It is 0 if somebody's number is not known.
func (m *ParamServer) usual() float64 {
	var sum float64
	for _, id := range m.due {
		i := m.hired(id)
		if m.workers[i].samples <= 0 {
			return 0
		}
		sum += float64(m.workers[i].samples)
	}
	return sum / float64(len(m.due))
}

// updated lets go on whom the gate lets.
func (m *ParamServer) updated() {
	if !m.busy {
		return
	}
	m.busy = false
	m.round++
	if !m.leads() {
		return
	}
	m.divide()
	for _, id := range m.updating {
		i := m.hired(id)
		if i < 0 || m.workers[i].state != arrived {
			continue
		}
		m.workers[i].state, m.workers[i].waits = held, m.now
		if m.abreast(id) && m.gate.Pushed(id, &m.board) {
			m.release(&m.workers[i])
		}
	}
	m.reconsider()
}

// reconsider asks the gate again for those who wait at it.
func (m *ParamServer) reconsider() {
	for i := range m.workers {
		if w := &m.workers[i]; w.state == held && m.abreast(w.id) && m.gate.Waiting(w.id, &m.board) {
			m.release(w)
		}
	}
}

// serverLead is how many pushes the server's own trainer may be ahead of its fastest worker.
const serverLead = 1

// abreast tells whether a worker may go on for all that the server minds. Its own trainer
// has no link to it: without a bound it would make most of the steps of a run whose
// transfers take longer than its gradients, from its own data alone.
func (m *ParamServer) abreast(id topology.PeerID) bool {
	if id != m.self || m.gate.Together() {
		return true
	}
	fastest, others := uint64(0), false
	for _, w := range m.workers {
		if w.id != m.self {
			fastest, others = max(fastest, m.board.Pushes(w.id)), true
		}
	}
	return !others || m.board.Pushes(m.self) <= fastest+serverLead
}

// release lets a worker go on, with the parameters as they are now.
func (m *ParamServer) release(w *worker) {
	w.active = m.now
	if w.id == m.self {
		w.state = away
		m.clock, m.stage = m.clock+1, training
		m.proceed()
		return
	}
	w.state, w.unsent = leaving, false
	for part := range m.config.Parts {
		m.send(w.id, averaging.Transfer{
			From: averaging.Parameters, Into: averaging.Parameters,
			Part: part, Parts: m.config.Parts, Round: w.clock,
		})
	}
}

// served is the end of a part of what was sent to a worker.
func (m *ParamServer) served(f flight, kind averaging.EventKind, why averaging.Reason) {
	m.awoken(f, kind)
	i := m.hired(f.peer)
	if i < 0 || !m.leads() {
		return
	}
	w := &m.workers[i]
	if w.state != leaving || f.transfer.Round != w.clock {
		return
	}
	if kind != averaging.Finished {
		w.unsent = true
	}
	if !w.unsent && !m.sendingTo(f.peer, averaging.Parameters) {
		w.state, w.active = away, m.now
	}
}

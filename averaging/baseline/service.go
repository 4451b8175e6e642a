package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is how a parameter server and its workers keep together.

func (m *ParamServer) viewed(overlay *topology.Overlay) {
	m.adopt(overlay)
	for _, w := range slices.Clone(m.workers) {
		if w.id != m.self && !m.member(w.id) {
			m.lost(w.id)
		}
	}
	if m.leader != "" && !m.leads() && !m.member(m.leader) {
		m.orphaned()
	}
	if m.concerned() {
		m.seek()
	}
}

// lost goes on without a peer.
func (m *ParamServer) lost(id topology.PeerID) {
	m.pass(id)
	m.leave(id)
}

func (m *ParamServer) leave(id topology.PeerID) {
	if m.leads() {
		m.forget(id)
		m.dismiss(id)
		m.reconsider()
		return
	}
	m.abort(id)
	switch {
	case id == m.leader:
		m.orphaned()
	case m.asking:
		m.seek()
	}
}

// told handles a word.
func (m *ParamServer) told(from topology.PeerID, w averaging.Word) {
	switch {
	case !m.heeds(from, w):
	case m.elected(from, w):
		m.answered(from, w)
	case w.Kind == wordParting && m.resting && from == m.leader:
		m.parted = true
	case w.Kind == wordParting:
		m.pass(from)
		m.leave(from)
	case w.Kind == wordStatus:
		m.status(from, w)
	case !m.leads() || m.hired(from) < 0:
	case w.Kind == wordSamples && w.Value >= 1 && w.Value <= MaxBatch:
		m.workers[m.hired(from)].samples = int(w.Value)
	case w.Kind == wordSpeed:
		m.workers[m.hired(from)].speed = w.Value
	}
}

// answered learns from what the server says.
func (m *ParamServer) answered(from topology.PeerID, w averaging.Word) {
	if from != m.leader || w.Kind != wordLead && w.Kind != wordHeard {
		return
	}
	m.offer = w.View
	if w.Kind == wordHeard {
		m.met = true
		if !m.astray {
			m.push()
		}
	}
}

// status handles where a worker says that it is.
func (m *ParamServer) status(from topology.PeerID, w averaging.Word) {
	if !m.leads() {
		m.pointed(from)
		return
	}
	m.tell(from, word(wordHeard, m.round, m.lineage, 0))
	_, p := unpacked(w.Value, statusBits)
	if stage(p) == sleeping {
		m.sleeps(from)
		return
	}
	m.forget(from)
	i := m.hired(from)
	if i < 0 || m.workers[i].strange {
		m.apply(from, w, stage(p))
		return
	}
	x := &m.workers[i]
	switch {
	case stage(p) != pulling:
	case (x.state == away || x.state == coming) && w.Round == x.clock+1:
		if !m.takingFrom(from) { // what has not come by now has been lost
			m.arrive(x)
		}
	case (x.state == away || x.state == leaving) && !m.sendingTo(from, averaging.Parameters):
		m.release(x)
	}
}

// apply is a worker that the server does not know: a newcomer, one that was left out, or
// the former server's. The last may push what it has.
func (m *ParamServer) apply(from topology.PeerID, w averaging.Word, s stage) {
	x := m.employ(from)
	x.clock, x.strange = w.Round, false
	known := w.View != 0 && (w.View == m.lineage || w.View == m.parent)
	switch {
	case s == pulling:
		m.release(x)
	case !known:
		x.clock++ // its push is answered without being taken
		m.release(x)
	}
}

// impatient speaks again where there is no answer, and breaks off what takes too long.
func (m *ParamServer) impatient() {
	if m.patience() {
		m.report()
		if m.met && !m.astray {
			m.push()
		}
	}
	for {
		f, found := m.stuck()
		if !found {
			break
		}
		m.abortOut(f.peer)
		m.gaveUp(f)
	}
	for i := range m.in {
		if f := m.in[i]; !f.aborted && m.now-f.began >= m.config.Deadline {
			m.abortIn(f.peer)
		}
	}
	if m.leads() {
		m.urge()
	}
}

// gaveUp goes on without a transfer that has taken too long.
func (m *ParamServer) gaveUp(f flight) {
	switch {
	case m.leads() && m.sleeper(f.peer) >= 0:
		m.awoken(f, averaging.Failed)
	case m.leads():
		m.dismiss(f.peer)
		m.reconsider()
	case f.peer == m.leader && m.stage == pushing:
		m.pushing, m.left, m.stage = 0, m.left[:0], pulling
		m.report()
	}
}

// urge goes on without the workers for which others have waited too long, and speaks to
// those who do not work for this server.
func (m *ParamServer) urge() {
	for id := range m.others {
		if m.hired(id) < 0 {
			m.tell(id, m.standing().word(m.lineage))
		}
	}
	patient := !slices.ContainsFunc(m.workers, func(w worker) bool {
		return (w.state == arrived || w.state == held) && m.now-w.waits >= m.config.Deadline
	})
	if patient && !m.over {
		return
	}
	for _, w := range slices.Clone(m.workers) {
		idle := w.state == away || w.state == coming || w.state == leaving
		if idle && m.now-w.active >= m.config.Deadline {
			m.dismiss(w.id)
		}
	}
	m.reconsider()
}

// divide gives the workers their parts of the flock's batch.
func (m *ParamServer) divide() {
	if m.config.Batch == 0 || !m.gate.Together() || len(m.workers) == 0 {
		return
	}
	speeds := make([]float64, len(m.workers))
	for i, w := range m.workers {
		speeds[i] = w.speed
	}
	for i, share := range Shares(m.config.Batch*len(speeds), speeds) {
		if m.workers[i].id == m.self {
			m.batch = share
		}
		m.tell(m.workers[i].id, word(wordBatch, m.round, m.lineage, float64(share)))
	}
}

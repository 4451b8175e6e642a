package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is how a parameter server brings the run to an end.

// sleeper is a worker for which the run is over: it gets the parameters of the end.
type sleeper struct {
	id    topology.PeerID
	after averaging.ExchangeID // the last that was sent to it as to a worker
	round uint64               // of the parameters that it is sent
	sent  bool                 // they have been
	lost  bool                 // some have not arrived
	has   uint64               // a bit for each part of them that has
}

func (m *ParamServer) sleeper(id topology.PeerID) int {
	return slices.IndexFunc(m.sleepers, func(s sleeper) bool { return s.id == id })
}

// sleeps notes that the run is over for a worker, for which nobody is to wait any more.
func (m *ParamServer) sleeps(id topology.PeerID) {
	if i := m.sleeper(id); i >= 0 {
		s := &m.sleepers[i]
		s.sent, s.lost = s.sent && !s.lost, false
		return
	}
	if i := m.hired(id); i >= 0 { // what it was sent before has arrived: it need not be broken off
		m.abortIn(id)
		m.fire(i)
	}
	m.sleepers = append(m.sleepers, sleeper{id: id, after: m.lastID})
	m.reconsider()
}

// forget goes on without one that slept.
func (m *ParamServer) forget(id topology.PeerID) {
	m.sleepers = slices.DeleteFunc(m.sleepers, func(s sleeper) bool { return s.id == id })
}

// handOut sends the parameters of the end to all that sleep, and tells whether they have
// them.
func (m *ParamServer) handOut() bool {
	all := true
	for i := range m.sleepers {
		s := &m.sleepers[i]
		if s.round != m.round { // there has been an update since
			if s.sent {
				m.abortOut(s.id)
			}
			s.round, s.sent, s.lost, s.has = m.round, false, false, 0
		}
		all = all && s.has == 1<<m.config.Parts-1 // MaxParts fits
		if !s.sent {
			s.sent = true
			m.handParts(s)
		}
	}
	return all
}

// handParts sends one that sleeps the parts that it has not got, and that are not under way.
func (m *ParamServer) handParts(s *sleeper) {
	for part := range m.config.Parts {
		underWay := slices.ContainsFunc(m.out, func(f flight) bool {
			return f.peer == s.id && f.id > s.after && f.transfer.Part == part
		})
		if s.has>>part&1 == 0 && !underWay {
			m.send(s.id, averaging.Transfer{
				From: averaging.Parameters, Into: averaging.Parameters, Part: part, Parts: m.config.Parts, Round: m.round,
			})
		}
	}
}

// awoken is the end of a part of the parameters of the end. If it did not arrive, the
// worker gets it anew with its next word.
func (m *ParamServer) awoken(f flight, kind averaging.EventKind) {
	i := m.sleeper(f.peer)
	switch {
	case i < 0 || !m.leads() || f.id <= m.sleepers[i].after:
	case kind == averaging.Finished:
		m.sleepers[i].has |= 1 << f.transfer.Part
	default:
		m.sleepers[i].lost = true
	}
}

// part ends this peer's part in the run once its trainer does not wait: a worker rests
// until it has the parameters of the end, the server until all workers have.
func (m *ParamServer) part() {
	if !m.over || m.waiting || m.settled {
		return
	}
	if m.leads() {
		m.dismiss(m.self)
		m.reconsider()
		if len(m.workers) > 0 {
			m.since = m.now
		}
	}
	if !m.resting {
		if !m.leads() {
			m.abort("")
		}
		m.stage = training
		m.rest()
	}
	alike := m.leads() && len(m.workers) == 0 && !m.busy && m.handOut()
	if alike || m.rested() && !m.busy && (m.leads() || len(m.in) == 0) {
		m.depart()
	}
}

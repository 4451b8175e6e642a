package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// service is what the server does with pushes, beside being a worker.
type service struct {
	m        *ParamServer
	board    Board
	staff    []worker // itself included while it trains
	retired  []retired
	due      []topology.PeerID
	busy     bool              // an update is being made
	updating []topology.PeerID // whose pushes it is of
}

// worker is a peer that the server works for.
type worker struct {
	id      topology.PeerID
	clock   uint64 // its own count of pushes that were answered
	state   workerState
	active  time.Duration // when it last began something
	waits   time.Duration // since when it waits at the gate
	samples int
	speed   float64
}

// workerState is where the server knows a worker to be.
type workerState uint8

const (
	away    workerState = iota // computes
	coming                     // pushes
	arrived                    // its push is in an update to be made, or in the next together
	held                       // waits at the gate
	leaving                    // is sent the parameters
)

// ofTheEnd is added to the round of a transfer of the parameters of the end, which answer no
// push.
const ofTheEnd = 1 << 62

// retired is a worker for which the run is over: it gets the parameters of the end.
type retired struct {
	id  topology.PeerID
	has bool
}

// workers implements role.
func (s *service) workers() int { return len(s.staff) }

// begun implements role: this peer serves.
func (s *service) begun() {
	s.clear()
	s.employ(s.m.Self)
	for id := range s.m.others {
		s.employ(id)
	}
	if s.m.waiting {
		s.contribute()
	}
}

// deposed implements role.
func (s *service) deposed() { s.clear() }

// clear forgets all that this peer knows as a server or worker, except its model.
func (s *service) clear() {
	s.m.Abort("")
	s.m.Ask(collective.Clear)
	for _, w := range s.staff {
		s.m.gate.Forget(w.id)
	}
	*s, s.m.astray = service{m: s.m, busy: s.busy}, false
}

// employ takes a worker in, which counts as one of the slowest.
func (s *service) employ(id topology.PeerID) *worker {
	i := s.hired(id)
	if i < 0 {
		i = len(s.staff)
		s.staff = append(s.staff, worker{id: id, active: s.m.Now})
		s.board.Add(id, s.board.Pushes(s.board.Slowest()))
	}
	return &s.staff[i]
}

func (s *service) hired(id topology.PeerID) int {
	return slices.IndexFunc(s.staff, func(w worker) bool { return w.id == id })
}

// dismiss goes on without a worker.
func (s *service) dismiss(id topology.PeerID) {
	s.m.Abort(id)
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool { return r.id == id })
	s.fire(id)
}

// fire takes a worker out of all lists.
func (s *service) fire(id topology.PeerID) {
	if i := s.hired(id); i >= 0 {
		s.staff = slices.Delete(s.staff, i, i+1)
		s.board.Remove(id)
		s.m.gate.Forget(id)
		s.due = slices.DeleteFunc(s.due, func(x topology.PeerID) bool { return x == id })
	}
	s.reconsider()
}

// status handles where a worker says that it is.
func (s *service) status(from topology.PeerID, w collective.Word) {
	s.m.Tell(from, word(wordHeard, s.m.round, s.m.current, 0))
	_, phase := collective.Unpack(w.Value, statusBits)
	i := s.hired(from)
	switch {
	case stage(phase) == resting:
		s.retire(from)
		return
	case i < 0: // a newcomer, or one that was left out: its push is answered without being taken
		x := s.employ(from)
		x.clock = w.Round
		if stage(phase) != pulling {
			x.clock++
		}
		s.release(x)
		return
	}
	x := &s.staff[i]
	switch idle := x.state == away || x.state == coming; {
	case stage(phase) != pulling:
	case idle && w.Round == x.clock+1:
		if !s.m.TakingFrom(from) { // what has not come by now has been lost
			s.arrive(x)
		}
	case (x.state == away || x.state == leaving) && !s.m.SendingTo(from, collective.Parameters):
		s.release(x)
	}
}

// retire notes that the run is over for a worker, for which nobody is to wait any more.
func (s *service) retire(id topology.PeerID) {
	if !slices.ContainsFunc(s.retired, func(r retired) bool { return r.id == id }) {
		s.m.AbortIn(id)
		s.retired = append(s.retired, retired{id: id})
		s.fire(id)
	}
}

// contribute adds the server's own gradient.
func (s *service) contribute() {
	w := s.employ(s.m.Self)
	w.samples, w.speed = s.m.samples, s.m.speed.value
	s.m.Do(collective.Action{Action: averaging.Action{Kind: collective.Load}, Add: true})
	s.arrive(w)
}

// offeredPush answers a worker that wants to push.
func (s *service) offeredPush(e collective.Event) {
	i := s.hired(e.Peer)
	switch {
	case !s.m.leads():
		s.m.Refuse(e, averaging.WrongRole)
	case i < 0 || e.Transfer.Round != s.staff[i].clock+1 || s.staff[i].state != away && s.staff[i].state != leaving:
		s.m.Refuse(e, averaging.Round)
	default:
		s.staff[i].state, s.staff[i].active = coming, s.m.Now
		s.m.Accept(e, 1)
	}
}

// received is the end of a push: in, or as far as it came.
func (s *service) received(f collective.Flight) {
	i := s.hired(f.Peer)
	if s.m.leads() && i >= 0 && s.staff[i].state == coming && f.Transfer.Round == s.staff[i].clock+1 {
		s.arrive(&s.staff[i])
	}
}

// arrive counts a push.
func (s *service) arrive(w *worker) {
	w.state, w.waits, w.active = arrived, s.m.Now, s.m.Now
	w.clock++
	s.board.Pushed(w.id, s.m.Now)
	s.due = append(s.due, w.id)
}

// serve does what is due.
func (s *service) serve() {
	if !s.m.leads() || s.busy || len(s.due) == 0 {
		return
	}
	update := collective.Action{Action: averaging.Action{Kind: collective.Update}, Progress: s.m.progress}
	if !s.m.gate.Together() {
		update.Weight, update.Share = s.usual(), 1/float64(max(len(s.staff), 1))
	} else if slices.ContainsFunc(s.staff, func(w worker) bool { return w.state != arrived }) {
		return
	}
	s.updating = append(s.updating[:0], s.due...)
	s.due = s.due[:0]
	s.busy = true
	s.m.Do(update)
}

// usual is the mean number of samples of the pushes of an update. Dividing by that, the
// update is as large as those that each would make by itself together, whichever parts
// of a push happen to be in it. It is 0 if somebody's number is not known.
func (s *service) usual() float64 {
	var sum float64
	for _, id := range s.due {
		samples := s.staff[s.hired(id)].samples
		if samples <= 0 {
			return 0
		}
		sum += float64(samples)
	}
	return sum / float64(len(s.due))
}

// updated lets go on whom the gate lets.
func (s *service) updated() {
	if !s.busy {
		return
	}
	s.busy = false
	s.m.round++
	if !s.m.leads() {
		return
	}
	s.divide()
	for _, id := range s.updating {
		i := s.hired(id)
		if i < 0 || s.staff[i].state != arrived {
			continue
		}
		s.staff[i].state, s.staff[i].waits = held, s.m.Now
		if s.abreast(id) && s.m.gate.Pushed(id, &s.board) {
			s.release(&s.staff[i])
		}
	}
	s.reconsider()
}

// reconsider asks the gate again for those who wait at it.
func (s *service) reconsider() {
	for i := range s.staff {
		if w := &s.staff[i]; w.state == held && s.abreast(w.id) && s.m.gate.Waiting(w.id, &s.board) {
			s.release(w)
		}
	}
}

// serverLead is how many pushes the server's own trainer may be ahead of its fastest worker.
const serverLead = 1

// abreast tells whether a worker may go on for all that the server minds. Its own trainer
// has no link to it: without a bound it would make most of the steps of a run whose
// transfers take longer than its gradients, from its own data alone.
func (s *service) abreast(id topology.PeerID) bool {
	if id != s.m.Self || s.m.gate.Together() {
		return true
	}
	fastest, others := uint64(0), false
	for _, w := range s.staff {
		if w.id != s.m.Self {
			fastest, others = max(fastest, s.board.Pushes(w.id)), true
		}
	}
	return !others || s.board.Pushes(s.m.Self) <= fastest+serverLead
}

// release lets a worker go on, with the parameters as they are now.
func (s *service) release(w *worker) {
	w.active = s.m.Now
	if w.id == s.m.Self {
		w.state = away
		s.m.clock, s.m.stage = s.m.clock+1, training
		s.m.proceed()
		return
	}
	w.state = leaving
	s.sendParameters(w.id, w.clock)
}

func (s *service) sendParameters(to topology.PeerID, round uint64) {
	s.m.Send(to, collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Parts: 1, Round: round}, false)
}

// served is the end of what was sent to a worker.
func (s *service) served(f collective.Flight, e collective.Event) {
	if !s.m.leads() {
		return
	}
	well := e.Kind == averaging.Finished
	if i := s.hired(f.Peer); i >= 0 && well && s.staff[i].state == leaving && f.Transfer.Round == s.staff[i].clock {
		s.staff[i].state, s.staff[i].active = away, s.m.Now
	}
	for i := range s.retired {
		if r := &s.retired[i]; r.id == f.Peer && f.Transfer.Round == ofTheEnd+s.m.round && s.complete() {
			r.has = r.has || well || e.Kind == averaging.Refused && e.Reason == averaging.Closing
		}
	}
}

// complete tells whether the parameters are those of the end.
func (s *service) complete() bool {
	return s.m.over && !s.m.waiting && len(s.staff) == 0 && len(s.due) == 0 && !s.busy
}

// part ends the server's part in the run, once all workers have the parameters of the end.
// They have the deadline for it.
func (s *service) part() {
	if !s.m.over || s.m.settled || s.m.waiting {
		return
	}
	s.m.seek()
	if !s.m.leads() {
		return
	}
	s.fire(s.m.Self)
	all := s.complete()
	if !all {
		s.m.since = s.m.Now
	}
	for _, r := range s.retired {
		if s.complete() && !r.has && !s.m.SendingTo(r.id, collective.Parameters) {
			s.sendParameters(r.id, ofTheEnd+s.m.round)
		}
		all = all && r.has
	}
	if all || !s.busy && s.m.Now-max(s.m.overAt, s.m.since) >= s.m.Deadline {
		s.m.depart()
	}
}

// urge goes on without the workers for which others have waited too long, and speaks to
// those who do not work for this server.
func (s *service) urge() {
	s.m.invite(func(id topology.PeerID) bool { return s.hired(id) >= 0 })
	patient := !slices.ContainsFunc(s.staff, func(w worker) bool {
		return (w.state == arrived || w.state == held) && s.m.Now-w.waits >= s.m.Deadline
	})
	if patient && !s.m.over {
		return
	}
	for _, w := range slices.Clone(s.staff) {
		idle := w.state == away || w.state == coming || w.state == leaving
		if idle && s.m.Now-w.active >= s.m.Deadline {
			s.dismiss(w.id)
		}
	}
}

// divide gives the workers their parts of the flock's batch.
func (s *service) divide() {
	if s.m.dividing == 0 || !s.m.gate.Together() || len(s.staff) == 0 {
		return
	}
	speeds := make([]float64, len(s.staff))
	for i, w := range s.staff {
		speeds[i] = w.speed
	}
	for i, share := range Shares(s.m.dividing*len(speeds), speeds) {
		if s.staff[i].id == s.m.Self {
			s.m.batch = share
		}
		s.m.Tell(s.staff[i].id, word(wordBatch, s.m.round, s.m.current, float64(share)))
	}
}

package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// service is the server's part, beside its work as a worker.
type service struct {
	m       *ParamServer
	board   Board
	retired []retired
	busy    bool // an update is being made
	outside outside
}

// outside are the gradients in Sum that programs beside the training have pushed since the last update began.
type outside struct{ pushes, samples int }

// ofTheEnd is added to the round of a transfer of the final parameters, which answers no
// push.
const ofTheEnd = 1 << 62

// retired is a worker for which the run is over: it gets the final parameters.
type retired struct {
	id  topology.PeerID
	has bool
}

// begun implements role: this peer serves.
func (s *service) begun() {
	s.clear()
	if !s.m.serveOnly {
		s.employ(s.m.Self)
	}
	for id := range s.m.members.Others {
		s.employ(id)
	}
	switch {
	case s.m.waiting && s.m.stage == pulling: // its push has gone to the server before
		s.m.clock, s.m.stage = s.m.clock+1, training
		s.m.proceed()
	case s.m.waiting:
		s.contribute()
	}
}

// clear resets this peer's state as a server or worker, except its model.
func (s *service) clear() {
	s.m.Ask(collective.Clear)
	*s = service{m: s.m, busy: s.busy}
}

// enter sets the state of a worker.
func (s *service) enter(w *worker, state workerState) { w.state, w.since = state, s.m.Now }

// employ adds a worker, which counts as one of the slowest.
func (s *service) employ(id topology.PeerID) *worker {
	if s.board.index(id) < 0 {
		s.board.Add(id)
		s.enter(s.board.of(id), away)
	}
	return s.board.of(id)
}

// dismiss goes on without a worker.
func (s *service) dismiss(id topology.PeerID) {
	s.m.Abort(id)
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool { return r.id == id })
	s.fire(id)
}

func (s *service) fire(id topology.PeerID) {
	s.board.Remove(id)
	s.reconsider()
}

// status handles a worker's status.
func (s *service) status(from topology.PeerID, said collective.Message) {
	s.m.Tell(from, message(collective.MessageAck, 0, 0))
	where, w := stage(said.Value), s.board.of(from)
	switch {
	case where == resting:
		s.retire(from)
	case w == nil: // a joiner, or one that was left out: its push is answered without being taken
		w = s.employ(from)
		w.clock = said.Round
		if where != pulling {
			w.clock++
		}
		s.release(w)
	case where != pulling:
	case (w.state == away || w.state == coming) && said.Round == w.clock+1:
		if !s.m.TakingFrom(from) { // what has not come by now is lost
			s.arrive(w)
		}
	case (w.state == away || w.state == leaving) && !s.m.SendingTo(from, collective.Parameters):
		w.clock = said.Round // if it differs, that of another life
		s.release(w)
	}
}

// retire notes that the run is over for a worker, so nobody waits for it any more. A late
// message may have added it again.
func (s *service) retire(id topology.PeerID) {
	if !slices.ContainsFunc(s.retired, func(r retired) bool { return r.id == id }) {
		s.retired = append(s.retired, retired{id: id})
	}
	if s.board.of(id) != nil {
		s.m.AbortIn(collective.With(id))
		s.fire(id)
	}
}

// contribute adds the server's own gradient.
func (s *service) contribute() {
	w := s.employ(s.m.Self)
	w.samples = s.m.samples
	if s.m.samples > 0 {
		w.comes = all
		s.m.Do(collective.Action{Action: averaging.Action{Kind: collective.Load}, Add: true})
	}
	s.arrive(w)
}

// offeredPush answers a worker that wants to push.
func (s *service) offeredPush(e collective.Event) {
	w := s.board.of(e.Peer)
	switch {
	case !s.m.leads():
		s.m.Refuse(e, averaging.WrongRole)
	case w == nil || e.Transfer.Round != w.clock+1, w.state == coming && w.comes&eighthsOf(e.Transfer) != 0,
		w.state != away && w.state != leaving && w.state != coming:
		s.m.Refuse(e, averaging.Round)
	default:
		if w.state != coming {
			s.enter(w, coming)
			w.comes, w.came = 0, 0
		}
		w.comes |= eighthsOf(e.Transfer)
		s.m.Accept(e, 1)
	}
}

// received handles the end of a part of a push, as far as it has come.
func (s *service) received(f collective.Flight) {
	if w := s.board.of(f.Peer); w != nil && w.state == coming && f.Transfer.Round == w.clock+1 {
		if w.came |= eighthsOf(f.Transfer); w.came == all {
			s.arrive(w)
		}
	}
}

// arrive counts a push.
func (s *service) arrive(w *worker) {
	s.enter(w, arrived)
	w.clock++
	s.board.Pushed(w.id, s.m.Now)
}

// serve makes the update that is due.
func (s *service) serve() {
	in := func(w worker) bool { return w.state == arrived }
	out := func(w worker) bool { return !in(w) }
	if !s.m.leads() || s.busy || s.outside.pushes == 0 && !slices.ContainsFunc(s.board.workers, in) {
		return
	}
	update := collective.Action{Action: averaging.Action{Kind: collective.Update}, Progress: s.m.progress}
	if !s.m.gate.Together() {
		update.Weight, update.Share = s.usual(), 1/float64(max(len(s.board.workers), 1))
	} else if slices.ContainsFunc(s.board.workers, out) {
		return
	}
	for i := range s.board.workers {
		if w := &s.board.workers[i]; w.state == arrived {
			s.enter(w, applied)
			w.samples, w.comes = 0, 0
		}
	}
	s.busy, s.outside = true, outside{}
	s.m.Do(update)
}

// usual is the mean number of samples of the pushes of an update, without those of which
// nothing has come. Divided by that, the update is as large as the updates of the single
// pushes together, whichever parts of them are in it. It is 0 if a worker's number is not known.
func (s *service) usual() float64 {
	sum, n := float64(s.outside.samples), float64(s.outside.pushes)
	for _, w := range s.board.workers {
		if w.state != arrived || w.comes == 0 {
			continue
		}
		if w.samples <= 0 {
			return 0
		}
		sum += float64(w.samples)
		n++
	}
	return sum / max(n, 1)
}

// updated implements role: it lets the workers go on that the gate allows.
func (s *service) updated() {
	if !s.busy {
		return
	}
	s.busy = false
	if !s.m.leads() {
		return
	}
	s.m.version++
	if s.m.gate.Together() {
		var ids []topology.PeerID
		for _, w := range s.board.workers {
			ids = append(ids, w.id)
		}
		s.m.divide(ids)
	}
	for i := range s.board.workers {
		if w := &s.board.workers[i]; w.state == applied {
			s.enter(w, held)
			s.let(w, true)
		}
	}
	s.reconsider()
}

// reconsider asks the gate again about the workers that wait.
func (s *service) reconsider() {
	for i := range s.board.workers {
		if w := &s.board.workers[i]; w.state == held {
			s.let(w, false)
		}
	}
}

// serverLead is how many pushes the server's own trainer may be ahead of its fastest worker.
const serverLead = 1

// let lets a worker go on, with the current parameters, if the gate allows it. The server
// bounds its own trainer too, which needs no transfer: without a bound it would make most of
// the steps, from its own data alone, in a run whose transfers take longer than its gradients.
func (s *service) let(w *worker, pushed bool) {
	if w.id == s.m.Self && !s.m.gate.Together() && s.alone() {
		return
	}
	if s.m.gate.Lets(w.id, pushed, &s.board) {
		s.release(w)
	}
}

// alone tells whether the server's own trainer is too far ahead of all other workers.
func (s *service) alone() bool {
	own, others := s.board.Pushes(s.m.Self), false
	for _, w := range s.board.workers {
		if w.id != s.m.Self && own <= w.pushes+serverLead {
			return false
		}
		others = others || w.id != s.m.Self
	}
	return others
}

// release lets a worker go on.
func (s *service) release(w *worker) {
	if w.id == s.m.Self {
		s.enter(w, away)
		s.m.clock, s.m.stage = s.m.clock+1, training
		s.m.proceed()
		return
	}
	s.enter(w, leaving)
	s.m.Tell(w.id, message(messageVersion, s.m.version, 0))
	s.m.sendParameters(w.id, w.clock, false)
}

// served handles the end of a transfer to a worker.
func (s *service) served(f collective.Flight, e collective.Event) {
	well := e.Kind == averaging.Finished
	if w := s.board.of(f.Peer); w != nil && well && w.state == leaving && f.Transfer.Round == w.clock {
		s.enter(w, away)
	}
	for i := range s.retired {
		if r := &s.retired[i]; r.id == f.Peer && f.Transfer.Round == ofTheEnd+s.m.version && s.complete() {
			r.has = r.has || well || e.Kind == averaging.Refused && e.Reason == averaging.Closing
		}
	}
}

// complete tells whether the parameters are final.
func (s *service) complete() bool {
	return s.m.over && !s.m.waiting && len(s.board.workers) == 0 && !s.busy
}

// rest ends the server's part in the run, once all workers have the final parameters or the
// deadline has passed.
func (s *service) rest() {
	if !s.m.over || s.m.settled {
		return
	}
	s.m.beginToSeek()
	if !s.m.leads() {
		return
	}
	if !s.m.waiting {
		s.fire(s.m.Self)
	}
	all := s.complete()
	if !all {
		s.m.since = s.m.Now
	}
	for _, r := range s.retired {
		if s.complete() && !r.has && !s.m.SendingTo(r.id, collective.Parameters) {
			s.m.sendParameters(r.id, ofTheEnd+s.m.version, false)
		}
		all = all && r.has
	}
	if all || !s.busy && s.m.Now-max(s.m.overAt, s.m.since) >= s.m.Deadline {
		s.m.depart()
	}
}

// urge goes on without workers that have kept others waiting too long, and sends messages
// to members that do not work for this server.
func (s *service) urge() {
	s.m.tellSome(s.m.claim(), func(id topology.PeerID) bool { return s.board.index(id) < 0 })
	late := func(w worker) bool { return s.m.Now-w.since >= s.m.Deadline }
	idle := func(w worker) bool { return w.state == away || w.state == coming || w.state == leaving }
	kept := func(w worker) bool { return !idle(w) && late(w) }
	if !s.m.over && !slices.ContainsFunc(s.board.workers, kept) {
		return
	}
	for _, w := range slices.Clone(s.board.workers) {
		if idle(w) && late(w) {
			s.dismiss(w.id)
		}
	}
}

package stages

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Bounds of sending on.
const (
	// leastWait and mostWait bound the time for which an answer is waited for: at first usualTimes the usual time, and in each
	// further try twice as long as in the one before.
	leastWait  = time.Second
	mostWait   = 10 * time.Minute
	usualTimes = 8
	// maxDoubles is how often the time may double before mostWait bounds it in any case.
	maxDoubles = 10
	// maxTries is how often a micro-batch is sent on without an answer, and maxGivenUp by how many it is given up, before it
	// is lost.
	maxTries   = 6
	maxGivenUp = 2
)

// leg is the way of a micro-batch to the next stage and back.
type leg struct {
	waits   bool            // for a member that has room
	away    bool            // with one
	again   bool            // since who had it was gone or silent
	first   time.Duration   // when it was first sent
	until   time.Duration   // when it is taken for lost
	numbers []uint64        // of its sendings that may still be answered
	givenUp int             // answers that it is of no use
	only    topology.PeerID // the one member that it may go to; nobody if any will do
}

// sender sends micro-batches on to the next stage. Numbers are new in each life of a member.
type sender struct {
	next   Router
	number uint64
	sent   map[uint64]sending
	trip   mean // until an answer, from the first sending on
	counts Counts
}

// sending is what was sent to whom.
type sending struct {
	leg *leg
	to  topology.PeerID
}

func newSender(first uint64) sender { return sender{number: first, sent: map[uint64]sending{}} }

// set says who the members of the next stage are now. What was with others is sent again.
func (s *sender) set(members []topology.PeerID) {
	for _, number := range s.next.Set(members) {
		if l := s.sent[number].leg; l != nil && l.away && l.numbers[len(l.numbers)-1] == number {
			l.away, l.waits, l.again = false, true, true
		}
	}
}

// broken is for a sending that cannot be answered any more.
func (s *sender) broken(now time.Duration, number uint64) {
	if l := s.sent[number].leg; l != nil && l.away && l.numbers[len(l.numbers)-1] == number {
		l.until = now
	}
}

// overdue tells whether a leg is to be given up; one that is silent for too long waits for another member.
func (s *sender) overdue(now time.Duration, l *leg) (lost bool) {
	if !l.away || now < l.until {
		return false
	}
	s.next.Silent(now, l.numbers[len(l.numbers)-1]) // a late answer is taken all the same
	l.away, l.waits, l.again = false, true, true
	return len(l.numbers) >= maxTries
}

// send sends a leg that waits, if a member has room.
func (s *sender) send(now time.Duration, l *leg) (to topology.PeerID, number uint64, ok bool) {
	if !l.waits {
		return "", 0, false
	}
	if to, ok = s.next.Choose(now, s.number, l.only); !ok {
		return "", 0, false
	}
	number, s.number = s.number, s.number+1
	if len(l.numbers) == 0 {
		l.first = now
	}
	if l.again {
		s.counts.Again++
	}
	wait := min(max(leastWait, usualTimes*time.Duration(s.trip)), mostWait) << min(len(l.numbers), maxDoubles)
	l.waits, l.again, l.away, l.until = false, false, true, now+min(wait, mostWait)
	l.numbers = append(l.numbers, number)
	s.sent[number] = sending{l, to}
	s.next.Sent(now, number, to)
	return to, number, true
}

// answered takes an answer. The leg is nil if this was not sent to that member, or is not waited for; ended tells that the
// micro-batch needs no other answer.
func (s *sender) answered(now time.Duration, from topology.PeerID, number uint64, answer Answer, load Load) (l *leg, ended bool) {
	s.next.Answered(now, number, from, load, answer)
	was := s.sent[number]
	if l = was.leg; l == nil || was.to != from {
		if answer == Done {
			s.counts.Late++
		}
		return nil, false
	}
	if answer == Done {
		s.trip.add(now - l.first)
		return l, true
	}
	if answer == GivenUp {
		if l.givenUp++; l.givenUp >= maxGivenUp {
			return l, true
		}
	}
	newest := l.away && l.numbers[len(l.numbers)-1] == number
	delete(s.sent, number)
	l.numbers = slices.DeleteFunc(l.numbers, func(n uint64) bool { return n == number })
	if newest {
		l.away, l.waits = false, true
	}
	return l, false
}

// end forgets a leg.
func (s *sender) end(l *leg) {
	for _, number := range l.numbers {
		s.next.Forget(number)
		delete(s.sent, number)
	}
	*l = leg{}
}

// sooner is the earlier of a moment, if there is any, and of that at which something is to be done about the leg.
func (l *leg) sooner(now, at time.Duration, any bool) (time.Duration, bool) {
	mine := l.until
	switch {
	case l.waits:
		mine = now + lookAgain
	case !l.away:
		return at, any
	}
	if any {
		mine = min(mine, at)
	}
	return mine, true
}

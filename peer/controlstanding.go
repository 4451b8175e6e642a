package peer

import (
	"bytes"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// operatorKinds is the number of kinds of messages that an operator sends.
	operatorKinds = int(wire.ControlWork)
	// maxPlanned bounds the messages of one kind that are kept: the one in force and
	// those that take effect later.
	maxPlanned = 4
	// maxStanding bounds all that is kept of an operator.
	maxStanding = operatorKinds * maxPlanned
)

// ordered is a message of the operator, checked, with its bytes.
type ordered struct {
	wire.Control
	bytes []byte
}

// later orders the messages of one kind.
func (m ordered) later(other ordered) bool {
	if m.Sequence != other.Sequence {
		return m.Sequence > other.Sequence
	}
	return bytes.Compare(m.bytes, other.bytes) > 0
}

// standing is what still counts of all that an operator has said. It follows from the
// messages alone, not from the order in which they came: a message replaces the
// earlier ones of its kind that take effect at its step or later. The zero value is
// ready.
type standing struct {
	kept [operatorKinds][]ordered // by kind less one; the earliest first
}

// of is the place of a kind, which must be an operator's that is known.
func (s *standing) of(kind wire.ControlKind) *[]ordered { return &s.kept[kind-1] }

func knownToOperators(kind wire.ControlKind) bool { return kind >= 1 && int(kind) <= operatorKinds }

// wants tells whether a message would change anything.
func (s *standing) wants(m ordered) bool {
	if !knownToOperators(m.Kind) {
		return true
	}
	newer := 0
	for _, kept := range *s.of(m.Kind) {
		if !kept.later(m) {
			if bytes.Equal(kept.bytes, m.bytes) {
				return false
			}
			continue
		}
		if kept.At <= m.At {
			return false
		}
		newer++
	}
	return newer < maxPlanned
}

// take keeps a message that is wanted, and drops what it replaces.
func (s *standing) take(m ordered) {
	kept := s.of(m.Kind)
	*kept = slices.DeleteFunc(*kept, func(old ordered) bool { return m.later(old) && old.At >= m.At })
	place := slices.IndexFunc(*kept, func(old ordered) bool { return old.later(m) })
	if place < 0 {
		place = len(*kept)
	}
	*kept = slices.Insert(*kept, place, m)
	if len(*kept) > maxPlanned {
		*kept = slices.Delete(*kept, 0, len(*kept)-maxPlanned)
	}
}

// all are the bytes of all messages that count.
func (s *standing) all() (messages [][]byte) {
	for _, kind := range s.kept {
		for _, m := range kind {
			messages = append(messages, m.bytes)
		}
	}
	return messages
}

// newest is the newest message of a kind that takes effect at once.
func (s *standing) newest(kind wire.ControlKind) (ordered, bool) {
	kept := *s.of(kind)
	if len(kept) == 0 {
		return ordered{}, false
	}
	return kept[len(kept)-1], true
}

// plan is what holds at a step of the flock, where f is what holds without orders.
func (s *standing) plan(total uint64, f inForce) inForce {
	for _, kind := range []wire.ControlKind{wire.ControlRate, wire.ControlPace, wire.ControlWork} {
		for _, m := range *s.of(kind) {
			if m.At > total {
				f.next = min(f.next, m.At)
				continue
			}
			f.obey(m)
		}
	}
	return f
}

// reached is what holds where a share of the work of so many peers is done, and f without
// orders. Of the steps that are this share of the work that holds at them, it takes that
// nearest to own: there are several only if the work changes.
func (s *standing) reached(progress float64, own, participants uint64, f inForce) inForce {
	found, off := s.plan(own, f), uint64(math.MaxUint64)
	for from := uint64(0); from < math.MaxUint64; {
		now := s.plan(from, f)
		at := uint64(math.Round(progress * float64(now.work.target(participants))))
		if away := max(at, own) - min(at, own); at >= from && at < now.next && away < off {
			found, off = now, away
		}
		from = now.next
	}
	return found
}

// obey puts a message in force. Its body has been decoded before.
func (f *inForce) obey(m ordered) {
	command, err := commandOf(m.Control)
	if err != nil {
		return
	}
	switch command.Kind {
	case SetSchedule:
		f.schedule = command.Schedule.withDefaults()
	case SetPace:
		f.pace.Every, f.pace.Drift = command.Every, 0
	case SetWork:
		f.work.Steps, f.work.StepsPerPeer = command.Work.Steps, command.Work.StepsPerPeer
	}
}

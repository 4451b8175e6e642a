package peer

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// CommandKind is what an operator can say.
type CommandKind uint8

// The kinds of commands.
const (
	// Announce tells what the run is: Settings and Layout.
	Announce CommandKind = iota + 1
	// Pause holds every trainer before its next step. Exchanges go on.
	Pause
	// Resume lets trainers go on.
	Resume
	// Stop ends the run for all; nothing begins it again.
	Stop
	// SetSchedule replaces the learning rate by Schedule.
	SetSchedule
	// SetPace replaces the number of local steps between exchanges by Every.
	SetPace
	// SetWork replaces what the flock has to do by Work; Grace is not part of it.
	SetWork
)

// String is the kind in a word.
func (k CommandKind) String() string {
	names := [...]string{"nothing", "announce", "pause", "resume", "stop", "schedule", "pace", "work"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("command %d", uint8(k))
}

// Command is what an operator says to a run. Only the fields of its kind count.
type Command struct {
	Kind CommandKind
	// Sequence is the number of the message, which grows. The operator's side sets it.
	Sequence uint64
	// At is the flock's step from which on a schedule, pace or work holds; 0 is at once.
	// One replaces those given before that were to hold from At or later.
	At uint64
	// Why tells people the reason of Pause, Resume and Stop: up to 200 bytes.
	Why string
	// Settings and Layout are what Announce says: up to 16 settings with names of up to
	// 32 bytes and values of up to 80; a zero Layout says nothing.
	Settings map[string]string
	Layout   [32]byte
	Schedule Schedule
	Every    int // 0 is as the link allows
	Work     Work
}

// body is what a control message says.
type body interface{ Append(dst []byte) []byte }

// encode makes a message of a command, without run, author and signature. It fails
// if the command says what no peer would take.
func (c Command) encode() (wire.Control, error) {
	var (
		m    = wire.Control{Sequence: c.Sequence}
		said body
	)
	switch c.Kind {
	case Announce:
		m.Kind, said = wire.ControlAnnounce, c.announcement()
	case Pause, Resume:
		m.Kind, said = wire.ControlHold, wire.Hold{Paused: c.Kind == Pause, Why: c.Why}
	case Stop:
		m.Kind, said = wire.ControlStop, wire.Stop{Why: c.Why}
	case SetSchedule:
		s := c.Schedule
		m.Kind, said = wire.ControlRate, wire.Rate{Full: s.Rate, Warmup: s.Warmup, Factor: s.Factor, Shape: uint8(s.Shape), Milestones: s.At}
	case SetPace:
		m.Kind, said = wire.ControlPace, wire.Pace{Every: uint32(min(max(c.Every, -1), math.MaxUint32))}
	case SetWork:
		m.Kind, said = wire.ControlWork, wire.Work{Steps: c.Work.Steps, StepsPerPeer: c.Work.StepsPerPeer}
	default:
		return m, fmt.Errorf("%v: no such command", c.Kind)
	}
	if m.Kind.Planned() {
		m.At = c.At
	} else if c.At != 0 {
		return m, fmt.Errorf("%v at step %d: it takes effect at once", c.Kind, c.At)
	}
	m.Body = said.Append(nil)
	if _, err := commandOf(m); err != nil {
		return m, fmt.Errorf("%v: %w", c.Kind, err)
	}
	return m, nil
}

func (c Command) announcement() wire.Announce {
	a := wire.Announce{Layout: c.Layout}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		a.Settings = append(a.Settings, wire.Setting{Name: name, Value: c.Settings[name]})
	}
	return a
}

// errKind: a command of a kind that this release does not know.
var errKind = errors.New("a kind of command that this release does not know")

// commandOf reads what a message of an operator says.
func commandOf(m wire.Control) (Command, error) {
	c := Command{Sequence: m.Sequence, At: m.At}
	switch m.Kind {
	case wire.ControlAnnounce:
		var a wire.Announce
		err := a.Decode(m.Body)
		c.Kind, c.Layout, c.Settings = Announce, a.Layout, make(map[string]string, len(a.Settings))
		for _, s := range a.Settings {
			c.Settings[s.Name] = s.Value
		}
		return c, err
	case wire.ControlHold:
		var h wire.Hold
		err := h.Decode(m.Body)
		if c.Kind, c.Why = Resume, h.Why; h.Paused {
			c.Kind = Pause
		}
		return c, err
	case wire.ControlStop:
		var s wire.Stop
		err := s.Decode(m.Body)
		c.Kind, c.Why = Stop, s.Why
		return c, err
	case wire.ControlRate:
		var r wire.Rate
		err := r.Decode(m.Body)
		c.Kind = SetSchedule
		c.Schedule = Schedule{Rate: r.Full, Warmup: r.Warmup, Shape: Shape(r.Shape), At: r.Milestones, Factor: r.Factor}
		return c, errors.Join(err, c.Schedule.validate())
	case wire.ControlPace:
		var p wire.Pace
		err := p.Decode(m.Body)
		c.Kind, c.Every = SetPace, int(p.Every)
		return c, err
	case wire.ControlWork:
		var w wire.Work
		err := w.Decode(m.Body)
		c.Kind, c.Work = SetWork, Work{Steps: w.Steps, StepsPerPeer: w.StepsPerPeer}
		return c, err
	}
	return c, errKind
}

package control

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

// Kind is what an operator can say.
type Kind uint8

// The kinds of commands.
const (
	// Announce tells what the run is: Settings and Layout.
	Announce Kind = iota + 1
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
	// SetWork replaces what the flock has to do by Steps and StepsPerPeer.
	SetWork
	// SetMembers asks members to leave, and says whom the lists of those that may take part are to have: Changes.
	SetMembers
	// SetDuties has members train or not, and says by which weights they are given rows: Changes.
	SetDuties
)

// String is the name of the kind.
func (k Kind) String() string {
	names := [...]string{"nothing", "announce", "pause", "resume", "stop", "schedule", "pace", "work", "members", "duties"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("command %d", uint8(k))
}

// Command is what an operator says to a run. Only the fields of its kind count.
type Command struct {
	Kind Kind
	// Sequence is the number of the message, which grows. The operator's side sets it.
	Sequence uint64
	// At is the flock's step from which on a schedule, pace or work holds; 0 is at once.
	// One replaces those given before that were to hold from At or later.
	At uint64
	// Why tells people the reason of Pause, Resume, Stop, SetMembers and SetDuties: up to 200 bytes.
	Why string
	// Settings and Layout are what Announce says: up to 16 settings with names of up to
	// 32 bytes and values of up to 80; a zero Layout says nothing.
	Settings map[string]string
	Layout   [32]byte
	// Schedule has no Floor: that with which the run began stays.
	Schedule rate.Schedule
	Every    int // 0 is as the link allows
	// Steps is the work of all peers together, StepsPerPeer that of each, as in
	// peer.Work.
	Steps, StepsPerPeer uint64
	// Changes are what SetMembers and SetDuties say of peers, the earliest first: up to 32, and as many as fit in a message.
	Changes []Change
}

// Bounds of what a command says, in bytes where it is text.
const (
	maxSettings     = 16
	maxSettingName  = 32
	maxSettingValue = 80
	maxWhy          = 200
	maxMilestones   = 16
)

// wireKinds are the kinds of messages: pausing and resuming are one.
var wireKinds = map[Kind]wire.ControlKind{
	Announce: wire.ControlAnnounce, Pause: wire.ControlHold, Resume: wire.ControlHold, Stop: wire.ControlStop,
	SetSchedule: wire.ControlRate, SetPace: wire.ControlPace, SetWork: wire.ControlWork,
	SetMembers: wire.ControlMembers, SetDuties: wire.ControlDuties,
}

// kindOf is the kind of a message, Resume of one that pauses or resumes, 0 if this release
// does not know it.
func kindOf(kind wire.ControlKind) Kind {
	for k, w := range wireKinds {
		if w == kind && k != Pause {
			return k
		}
	}
	return 0
}

// ErrKind: a command of a kind that this release does not know.
var ErrKind = errors.New("a kind of command that this release does not know")

// Message makes a message of a command, without run, author and signature. It fails
// if the command says what no peer would take.
func (c Command) Message() (wire.Control, error) {
	m := wire.Control{Kind: wireKinds[c.Kind], Sequence: c.Sequence, At: c.At, Body: c.body()}
	if c.At != 0 && !m.Kind.Planned() {
		return m, fmt.Errorf("%v at step %d: it takes effect at once", c.Kind, c.At)
	}
	if floor := c.Schedule.Floor; floor != 0 {
		return m, fmt.Errorf("%v: a floor of %v: no message says one, and that of the run stays: leave it 0", c.Kind, floor)
	}
	if len(m.Body) > wire.MaxControlBody {
		return m, fmt.Errorf("%v: %d bytes, at most %d: say less at once", c.Kind, len(m.Body), wire.MaxControlBody)
	}
	if _, err := CommandOf(m); err != nil {
		return m, fmt.Errorf("%v: %w", c.Kind, err)
	}
	return m, nil
}

// CommandOf reads what a message of an operator says.
func CommandOf(m wire.Control) (Command, error) {
	c := Command{Kind: kindOf(m.Kind), Sequence: m.Sequence, At: m.At}
	if c.Kind == 0 {
		return c, ErrKind
	}
	body := wire.BodyReader(wire.TypeControl, m.Body)
	c.fields(&body)
	return c, errors.Join(body.Finish(), c.Schedule.Validate())
}

// body is what a message of the command says; docs/WIRE.md has the bytes.
func (c Command) body() []byte {
	body := wire.BodyWriter()
	c.fields(&body)
	return body.Written()
}

// fields writes or reads what commands of its kind say.
func (c *Command) fields(f *wire.Coder) {
	switch c.Kind {
	case Announce:
		f.Fixed(c.Layout[:])
		c.settings(f)
	case Pause, Resume:
		paused := c.Kind == Pause
		if f.Bool(&paused); paused {
			c.Kind = Pause
		}
		f.Text(&c.Why, 0, maxWhy)
	case Stop:
		f.Text(&c.Why, 0, maxWhy)
	case SetSchedule:
		s := &c.Schedule
		f.Float(&s.Rate)
		f.Float(&s.Warmup)
		f.Float(&s.Factor)
		f.Uint8((*uint8)(&s.Shape))
		if n := f.Count(len(s.At), 1, 0, maxMilestones, "milestones"); f.Reading {
			s.At = make([]float64, n)
		}
		for i := range s.At {
			f.Float(&s.At[i])
		}
	case SetPace:
		every := uint32(min(max(int64(c.Every), -1), math.MaxUint32))
		if f.Uint32(&every); every > math.MaxInt32 {
			f.Fault("%d steps between exchanges", every)
		}
		c.Every = int(every)
	case SetWork:
		f.Uint64(&c.Steps)
		f.Uint64(&c.StepsPerPeer)
	case SetMembers, SetDuties:
		f.Text(&c.Why, 0, maxWhy)
		c.changes(f)
	}
}

// settings writes or reads the settings, in the order of their names.
func (c *Command) settings(f *wire.Coder) {
	names := slices.Sorted(maps.Keys(c.Settings))
	if n := f.Count(len(names), 1, 0, maxSettings, "settings"); f.Reading {
		names, c.Settings = make([]string, n), make(map[string]string, n)
	}
	last := ""
	for i := range names {
		f.Text(&names[i], 1, maxSettingName)
		value := c.Settings[names[i]]
		f.Text(&value, 0, maxSettingValue)
		if names[i] <= last {
			f.Fault("settings twice, or out of order")
		}
		if last = names[i]; f.Reading {
			c.Settings[last] = value
		}
	}
}

package collective

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Machine is an averaging.Machine that also transfers parts of buffers and sends messages.
type Machine interface {
	averaging.Machine
	// Decide does for all events and actions what Handle does for those of exchanges,
	// on the same terms. Every GradientDone is answered by a Proceed or a Halt, every
	// Offered at once by an Accept or a Refuse. A runtime calls Decide and not Handle.
	Decide(now time.Duration, event Event, actions []Action) []Action
	// Traits say what a runtime must prepare. They never change.
	Traits() Traits
}

// Traits are the properties of a machine.
type Traits struct {
	// Algorithm is announced to the other peers.
	Algorithm Algorithm
	// Gradients: the machine averages gradients rather than models. Its trainer computes
	// a gradient at the parameters, reports GradientDone, and waits for Proceed: it never
	// applies an optimizer by itself, and StepDone is not reported, but for Local.
	Gradients bool
	// Local, if Every is above 0, makes of Every steps one gradient.
	Local Local
	// ServesOnly: the machine serves parameters and its trainer makes no steps: GradientDone is not reported.
	ServesOnly bool
	// Pools: the peers average models while they train, and make one model of all of them
	// when the run is over, by Pool, transfers of the Sum and Adopt, before Settled. From
	// RunOver on the trainer's steps are not applied, and transfers are not rounded.
	Pools bool
	// Commits: the parameters change only when the machine says Commit.
	Commits bool
	// Messages: the machine takes messages of others.
	Messages bool
	// Pace gives and sets how often the machine exchanges; may be nil.
	Pace Paced
	// Size, if not nil, is called first.
	Size Sized
	// Server tells who serves the parameters, if somebody does; else it is nil.
	Server Server
}

// Local says how steps that trainers make for themselves become a step of all: Every of them, on
// a model of the trainer's own, come to a difference, which is the gradient. Each step but the
// last is reported by StepDone, and answered by Proceed. The update is not the optimizer's, but a
// step at Rate with Nesterov's momentum.
type Local struct {
	Every          int
	Rate, Momentum float64
}

// Sized is a machine that needs to know the number of values in the buffers, and whether the codecs of its transfers
// round them.
type Sized interface{ SetLength(values int, rounds bool) }

// Server is a machine whose parameters are served, by one peer for each of some parts.
type Server interface {
	Parts() int
	// Served tells who serves a part, "" if that is not known, and the version of the parameters there that this peer
	// knows.
	Served(part int) (by topology.PeerID, version uint64)
}

// Paced is a machine that exchanges every so many steps, which may be changed.
type Paced interface {
	Every() int
	SetPace(averaging.Pace) error
}

// Of returns m itself if it is a Machine of this package, or else a wrapper that behaves like m.
func Of(m averaging.Machine) Machine {
	if c, ok := m.(Machine); ok {
		return c
	}
	return &exchanging{Machine: m}
}

// exchanging wraps a machine that knows exchanges only.
type exchanging struct {
	averaging.Machine
	scratch []averaging.Action
}

func (m *exchanging) Decide(now time.Duration, event Event, actions []Action) []Action {
	m.scratch = m.Handle(now, event.Event, m.scratch[:0])
	for _, a := range m.scratch {
		actions = append(actions, Action{Action: a})
	}
	return actions
}

func (m *exchanging) Traits() Traits {
	var t Traits
	t.Pace, _ = m.Machine.(Paced)
	switch x := m.Machine.(type) {
	case *averaging.ADPSGD:
		t.Algorithm = ADPSGD
	case interface{ Algorithm() Algorithm }:
		t.Algorithm = x.Algorithm()
	}
	return t
}

// Handle implements averaging.Machine for a Machine, for a runtime that knows exchanges
// only; the machine then has no other actions.
func Handle(m Machine, now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	for _, a := range m.Decide(now, Event{Event: event}, nil) {
		if a.Kind < Send {
			actions = append(actions, a.Action)
		}
	}
	return actions
}

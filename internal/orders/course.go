package orders

import (
	"math"
	"math/bits"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

// Course is the schedule, pace and work that apply at a step of the flock.
type Course struct {
	Schedule rate.Schedule
	Pace     averaging.Pace
	// Steps is the work of all peers together, StepsPerPeer that of each; 0 means no bound.
	Steps, StepsPerPeer uint64

	next uint64 // the flock's step at which the course changes
}

// Target is the total number of steps for so many peers, 0 if there is no end.
func (c Course) Target(participants uint64) uint64 {
	over, each := bits.Mul64(c.StepsPerPeer, participants)
	if over > 0 {
		each = math.MaxUint64
	}
	switch {
	case c.Steps == 0:
		return each
	case each == 0:
		return c.Steps
	}
	return min(c.Steps, each)
}

// after is the course once an order has taken effect. The order's body has been validated before.
func (c Course) after(order orderlog.Order) Course {
	command, err := control.CommandOf(order.Control)
	if err != nil {
		return c
	}
	switch command.Kind {
	case control.SetSchedule:
		command.Schedule.Floor = c.Schedule.Floor // no message carries it
		c.Schedule = command.Schedule
	case control.SetPace:
		c.Pace.Every, c.Pace.Drift = command.Every, 0
	case control.SetWork:
		c.Steps, c.StepsPerPeer = command.Steps, command.StepsPerPeer
	}
	return c
}

// courseAt is the course at a step of the flock; begun is the course without orders.
func courseAt(total uint64, orders *orderlog.Orders, begun Course) Course {
	c := begun
	c.next = math.MaxUint64
	for _, kind := range []wire.ControlKind{wire.ControlRate, wire.ControlPace, wire.ControlWork} {
		for _, order := range orders.Of(kind) {
			if order.At > total {
				c.next = min(c.next, order.At)
				continue
			}
			c = c.after(order)
		}
	}
	return c
}

// courseReached is the course at which a share of the work of so many peers is done. If
// several steps fit, because the work changes, it takes the one nearest to own.
func courseReached(progress float64, own, participants uint64, orders *orderlog.Orders, begun Course) Course {
	found, off := courseAt(own, orders, begun), uint64(math.MaxUint64)
	for from := uint64(0); from < math.MaxUint64; {
		now := courseAt(from, orders, begun)
		at := uint64(math.Round(progress * float64(now.Target(participants))))
		if away := max(at, own) - min(at, own); at >= from && at < now.next && away < off {
			found, off = now, away
		}
		from = now.next
	}
	return found
}

package orders

import (
	"math"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

// Course is what holds at a step of the flock.
type Course struct {
	Schedule rate.Schedule
	Pace     averaging.Pace
	// Steps is the work of all peers together, StepsPerPeer that of each; 0 is no bound.
	Steps, StepsPerPeer uint64

	next uint64 // the flock's step at which something else holds
}

// Target is the number of steps that is the work of so many peers, 0 if there is no end.
func (c Course) Target(participants uint64) uint64 {
	each := c.StepsPerPeer * participants
	switch {
	case c.Steps == 0:
		return each
	case each == 0:
		return c.Steps
	}
	return min(c.Steps, each)
}

// after is what holds once an order has taken effect. Its body has been read before.
func (c Course) after(order orderlog.Order) Course {
	command, err := control.CommandOf(order.Control)
	if err != nil {
		return c
	}
	switch command.Kind {
	case control.SetSchedule:
		command.Schedule.Floor = c.Schedule.Floor // of which no message says anything
		c.Schedule = command.Schedule
	case control.SetPace:
		c.Pace.Every, c.Pace.Drift = command.Every, 0
	case control.SetWork:
		c.Steps, c.StepsPerPeer = command.Steps, command.StepsPerPeer
	}
	return c
}

// courseAt is what holds at a step of the flock, where begun does without orders.
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

// courseReached is what holds where a share of the work of so many peers is done. Of the
// steps that are this share of the work that holds at them, it takes that nearest to own:
// there are several only if the work changes.
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

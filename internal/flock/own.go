package flock

import (
	"sync/atomic"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Own is this peer's own state, as its record announces it.
type Own struct {
	steps    atomic.Uint64
	resumed  atomic.Uint64 // of the steps, those of earlier lives
	head     atomic.Uint64 // steps behind this peer's model, taken by others
	idle     atomic.Bool   // it does not train
	rows     atomic.Uint64 // that it gives to others
	place    atomic.Pointer[transport.Place]
	stage    atomic.Uint32 // of the model that it trains, as in its record
	together atomic.Bool   // Together

	incarnation atomic.Uint64
	unreachable atomic.Bool
	layout      atomic.Value // a hash
}

// Steps is the number of steps of this peer, those of earlier lives included.
func (o *Own) Steps() uint64 { return o.steps.Load() }

// Stepped counts a step of this peer, and returns Steps.
func (o *Own) Stepped() uint64 { return o.steps.Add(1) }

// Resumed is how many of the steps of this peer are those of earlier lives.
func (o *Own) Resumed() uint64 { return o.resumed.Load() }

// Head is the number of steps behind this peer's model that others have taken.
func (o *Own) Head() uint64 { return o.head.Load() }

// Age is the number of steps behind this peer's model.
func (o *Own) Age() uint64 { return o.head.Load() + o.steps.Load() }

// SetAge sets the age of the model in steps; it is at least this peer's own steps.
func (o *Own) SetAge(steps uint64) {
	own := o.steps.Load()
	o.head.Store(max(steps, own) - own)
}

// Idle tells whether this peer does not train; SetIdle sets it.
func (o *Own) Idle() bool        { return o.idle.Load() }
func (o *Own) SetIdle(idle bool) { o.idle.Store(idle) }

// Rows is how many rows this peer gives to others that train; SetRows sets it.
func (o *Own) Rows() uint64     { return o.rows.Load() }
func (o *Own) SetRows(n uint64) { o.rows.Store(n) }

// Stage is the stage of the model that this peer trains, as in transport.Record; SetStage sets it.
func (o *Own) Stage() uint8     { return uint8(o.stage.Load()) }
func (o *Own) SetStage(n uint8) { o.stage.Store(uint32(n)) }

// Waits tells whether this peer waits near the end for news of the others before a step, which it does not do for a stage: those of
// other stages may need it for their own steps. Together says that all stages make theirs together.
func (o *Own) Waits() bool { return o.Stage() == 0 || o.together.Load() }
func (o *Own) Together()   { o.together.Store(true) }

// Alike tells whether a member trains the same parameters as this peer: the whole model, or the same stage.
func (o *Own) Alike(r transport.Record) bool { return Trains(r) && r.Stage == o.Stage() }

// Place is where in the network this peer says that it is; SetPlace sets it.
func (o *Own) Place() transport.Place {
	if place := o.place.Load(); place != nil {
		return *place
	}
	return transport.Place{}
}
func (o *Own) SetPlace(place transport.Place) { o.place.Store(&place) }

// SetSite sets the site alone.
func (o *Own) SetSite(site string) { o.SetPlace(transport.Place{Site: site, Uplink: o.Place().Uplink}) }

// Incarnation is the number of this life among those known to the network; SetIncarnation sets it.
func (o *Own) Incarnation() uint64        { return o.incarnation.Load() }
func (o *Own) SetIncarnation(life uint64) { o.incarnation.Store(life) }

// Unreachable tells that others cannot dial this peer.
func (o *Own) Unreachable() bool { return o.unreachable.Load() }

// SetReachable sets whether others can dial this peer. news is true if that has changed.
func (o *Own) SetReachable(reachable bool) (news bool) {
	return o.unreachable.Swap(!reachable) == reachable
}

// Layout is the hash of the layout of the model trained here, zeros if there is none; SetLayout sets it.
func (o *Own) Layout() [32]byte {
	hash, _ := o.layout.Load().([32]byte)
	return hash
}
func (o *Own) SetLayout(hash [32]byte) { o.layout.Store(hash) }

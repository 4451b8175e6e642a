package baseline

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// trainer is what a machine knows about its own trainer.
type trainer struct {
	*collective.Flights
	waiting  bool          // for Proceed
	since    time.Duration // when it began to wait
	underway time.Duration // since when parts of its next gradient are ready, 0 if none is
	over     bool          // the run is over for this peer
	overAt   time.Duration
	version  uint64 // of the parameters
	settled  bool
	speed    speedometer
	samples  int // of its last gradient
	batch    int // samples that the next gradient should be of; 0 leaves it to the trainer
	saying   int // farewells still to be sent
}

// proceed lets the trainer go on.
func (t *trainer) proceed() {
	if t.waiting {
		t.waiting = false
		t.speed.began(t.Now)
		t.Do(collective.Action{Action: averaging.Action{Kind: averaging.Proceed}, Batch: t.batch, Version: t.version})
	}
}

// halt makes the trainer's step fail.
func (t *trainer) halt() {
	if t.waiting {
		t.waiting = false
		t.Do(collective.Action{Action: averaging.Action{Kind: averaging.Halt, Reason: averaging.NoCoordinator}})
	}
}

// settle reports, once, that the run is over here.
func (t *trainer) settle() {
	if !t.settled {
		t.settled, t.saying = true, farewells
		t.Ask(averaging.Settled)
	}
}

// farewell tells others that the run is over here, as often as is still due.
func (t *trainer) farewell(others ...topology.PeerID) {
	if t.saying > 0 {
		t.saying--
		for _, id := range others {
			t.Tell(id, message(messageParting, 0, 0))
		}
	}
}

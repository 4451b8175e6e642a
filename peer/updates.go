package peer

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// updates are the steps that a machine asks for which averages gradients
// (collective.Traits.Gradients): of the mean of all peers' gradients, or at a server of what
// workers have sent it. The peer's optimizer makes them, one at a time, while the trainer
// waits or computes.
type updates struct {
	trainer   *trainer.Trainer
	replica   *replica.Replica
	optimizer optim.Optimizer
	loop      conversations.Loop // is told when one is made
	life      *tasks.Life
	log       *zap.Logger

	room    chan struct{} // holds a token while no update is under way
	mean, x tensor.Vector // of the update; whoever holds the token owns them
	faults  chan error    // why the last update, or gradient, was left out; holds one
	warned  bool          // that the optimizer cannot forget; whoever holds the token owns it
}

func newUpdates(u updates) *updates {
	values := u.replica.Len()
	u.room, u.faults = make(chan struct{}, 1), make(chan error, 1)
	u.mean, u.x = make(tensor.Vector, values), make(tensor.Vector, values)
	u.room <- struct{}{}
	return &u
}

// begin has the optimizer make a step of what has been summed up. What is in the sum
// is taken at once, so that whatever the machine does to the sum next comes after; the
// loop waits for an update before, if one is under way.
func (u *updates) begin(action collective.Action) {
	<-u.room
	u.replica.Drain(u.mean, action.Weight)
	begun := u.life.Tasks.Spawn(func() {
		if action.Forget {
			u.warn()
		}
		if err := u.trainer.Update(action, u.mean, u.x); err != nil {
			u.log.Warn("leaving out an update", zap.Error(err))
			u.fault(err)
		}
		u.room <- struct{}{}
		u.loop.Event(collective.Event{Event: averaging.Event{Kind: collective.Updated}})
	})
	if !begun { // the peer is closing
		u.room <- struct{}{}
	}
}

// warn says once that an optimizer which is to forget cannot. The caller holds the token.
func (u *updates) warn() {
	if _, can := u.optimizer.(optim.Resetter); can || u.warned {
		return
	}
	u.warned = true
	u.log.Warn("a peer has come, and the optimizer has no method Reset to forget past gradients with: if it remembers any, the models of the peers stay apart. Give it one (see optim.Resetter)",
		zap.String("optimizer", fmt.Sprintf("%T", u.optimizer)))
}

// fault is what the trainer's step is to fail with.
func (u *updates) fault(err error) {
	select {
	case u.faults <- err:
	default: // the trainer has not heard of the last one
	}
}

package peer

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxPast bounds the lives that a Checkpoint tells apart, at most two of a member; what
// further ones have done is in its Inherited.
const MaxPast = flock.MaxPast

// Past is what one life of a member has done, or all lives up to one.
type Past struct {
	Peer        seam.PeerID
	Incarnation uint64
	Steps       uint64
	// Resumed tells that Steps include what earlier lives of the member had done.
	Resumed bool
}

// Checkpoint is what lies behind saved parameters, as Stats told when they were
// saved. A peer that comes back with one trains on from it if the flock has moved on
// by no more than a tenth of its work since, and copies the flock's model otherwise.
type Checkpoint struct {
	// Steps are those behind the parameters, Stats.Age.
	Steps uint64
	// FlockSteps are those of all peers together, Stats.FlockSteps.
	FlockSteps uint64
	// Own are this peer's own, Stats.Steps. If they are given, as Save does, the peer
	// goes on from them, and the flock from what its members come back with: of the
	// others, Past and Inherited tell it until they are heard of.
	Own uint64
	// Incarnation is the life that saved the checkpoint: this one is a later one.
	Incarnation uint64
	// Past are the lives of other members, at most MaxPast, and Inherited what others
	// have done beside.
	Past      []Past
	Inherited uint64
	// Peers is the most peers that were members at once. Default: those of Past, and
	// this one.
	Peers uint64
	// Orders are what the operator has said, as signed, that still counts: a flock that
	// was paused comes back paused, and a schedule that was changed stays so.
	Orders [][]byte
	// Description is that of the run, as who began it has signed it. It is passed on as long
	// as Network.Description is no other.
	Description description.Signed
}

func (c Checkpoint) validate() error {
	if n := len(c.Past); n > MaxPast {
		return fmt.Errorf("Checkpoint.Past has %d lives: want at most %d", n, MaxPast)
	}
	if n := c.Incarnation; n >= seam.MaxIncarnation {
		return fmt.Errorf("Checkpoint.Incarnation is %d, which no peer reaches: it is damaged; begin without the checkpoint, or with one before it", n)
	}
	return nil
}

// Saved is what a peer needs, beside its configuration, to go on in another life
// where it is now: Params as Training.Params, Optimizer for that of Training.Optimizer
// (see optim.Stateful), Checkpoint as Training.Checkpoint.
type Saved struct {
	Params     tensor.Vector
	Optimizer  optim.State
	Checkpoint Checkpoint
}

// done is what lies behind the parameters of this life of a peer now.
func done(f *flock.Flock, incarnation uint64, orders [][]byte) Checkpoint {
	c := Checkpoint{
		Steps: f.Age(), FlockSteps: f.Total(),
		Own: f.Steps(), Incarnation: incarnation, Peers: f.Participants(), Orders: orders,
	}
	lives, inherited := f.Past()
	c.Inherited = inherited
	for _, r := range lives {
		c.Past = append(c.Past, Past{Peer: r.Peer, Incarnation: r.Incarnation, Steps: r.Steps, Resumed: r.Flags&flock.Resumed != 0})
	}
	return c
}

// tellsWho tells whether a checkpoint says who did what lies behind the model: who has
// made no step of its own knows that of the others.
func (c Checkpoint) tellsWho() bool { return c.Own > 0 || c.Incarnation > 0 }

// resume takes up what an earlier life has left, before anybody hears of this one.
func (c Checkpoint) resume(f *flock.Flock) {
	if !c.tellsWho() {
		return
	}
	lives := make([]seam.Record, len(c.Past))
	for i, past := range c.Past {
		lives[i] = seam.Record{Peer: past.Peer, Incarnation: past.Incarnation, Steps: past.Steps}
		if past.Resumed {
			lives[i].Flags = flock.Resumed
		}
	}
	f.Resume(c.Own, c.Steps, lives, c.Inherited, c.Peers)
}

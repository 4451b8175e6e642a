package peer

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Checkpoint is the history of saved parameters; Trainer.Save makes it, for the moment of the
// parameters. A peer that comes back with a checkpoint trains on from it if the flock has since done
// no more than a tenth of its work, and copies the flock's model otherwise. It is opaque; store it
// with MarshalBinary. The zero value means parameters without history.
type Checkpoint struct{ is behind }

// behind is the content of a Checkpoint. Its JSON names are those in files, and do not change.
type behind struct {
	// Steps are this peer's own. If they are not 0, as after Save, the peer counts on from them, and
	// the flock from what its members come back with. Past and Inherited stand for the other members
	// until their records arrive.
	Steps uint64 `json:"steps"`
	// Age is the number of steps in the parameters, FlockSteps that of all peers together.
	Age        uint64 `json:"age"`
	FlockSteps uint64 `json:"flock_steps"`
	// Incarnation is the life that saved the checkpoint; the current life has a higher one.
	Incarnation uint64 `json:"incarnation"`
	// Past are the lives of other members, at most flock.MaxPast, and Inherited the steps of others that are in none
	// of them.
	Past      []past `json:"past,omitempty"`
	Inherited uint64 `json:"inherited"`
	// Peers is the most peers that were members at once; 0 means the members in Past and this one.
	Peers uint64 `json:"peers,omitempty"`
	// Orders are the operator's commands that still count, as signed: a flock that was
	// paused comes back paused, and a changed schedule stays changed.
	Orders [][]byte `json:"orders,omitempty"`
	// Description is that of the run, as signed by the peer that began it. It is passed on
	// unless Network.Description differs.
	Description description.Signed `json:"description,omitzero"`
}

// past holds the steps of one life of a member. Resumed means that Steps include those of its
// earlier lives.
type past struct {
	Peer        transport.PeerID `json:"peer"`
	Incarnation uint64           `json:"incarnation"`
	Steps       uint64           `json:"steps"`
	Resumed     bool             `json:"resumed,omitempty"`
}

// CheckpointOf makes a checkpoint for parameters that were copied when Stats returned s, for callers that
// keep nothing else of a peer. The peer comes back with its own steps, and knows nothing of the others.
func CheckpointOf(s stats.Peer) Checkpoint {
	return Checkpoint{behind{Steps: s.Steps, Age: s.Age, FlockSteps: s.FlockSteps, Incarnation: s.Incarnation}}
}

// Describing returns the checkpoint with a member's signed description of the run (Inquiry.Signed),
// to be passed on.
func (c Checkpoint) Describing(run description.Signed) Checkpoint {
	c.is.Description = run
	return c
}

// MarshalBinary writes the checkpoint as text, which later releases can read.
func (c Checkpoint) MarshalBinary() ([]byte, error) { return json.Marshal(c.is) }

// UnmarshalBinary reads what MarshalBinary wrote, and refuses values that no peer can have.
func (c *Checkpoint) UnmarshalBinary(text []byte) error {
	var read behind
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("reading a checkpoint: %w", err)
	}
	if err := read.validate(); err != nil {
		return err
	}
	c.is = read
	return nil
}

func (b behind) validate() error {
	if n := len(b.Past); n > flock.MaxPast {
		return fmt.Errorf("the checkpoint has %d lives, more than %d", n, flock.MaxPast)
	}
	if n := b.Incarnation; n >= transport.MaxIncarnation {
		return fmt.Errorf("the checkpoint's incarnation is %d, which no peer reaches: it is damaged; begin without the checkpoint, or with one before it", n)
	}
	for _, p := range b.Past { // whose steps would count for ever, and not what the member takes
		if err := transport.CheckID(p.Peer); err != nil || p.Incarnation > transport.MaxIncarnation {
			return fmt.Errorf("the checkpoint has life %d of member %q, which there cannot be: it is damaged", p.Incarnation, p.Peer)
		}
	}
	return nil
}

// done makes the checkpoint of this moment.
func done(f *flock.Flock, o *orders.Orders, described description.Signed) Checkpoint {
	b := behind{
		Steps: f.Steps(), Age: f.Age(), FlockSteps: f.Total(), Incarnation: f.Incarnation(),
		Peers: f.Participants(), Orders: o.All(), Description: described,
	}
	lives, inherited := f.Past()
	b.Inherited = inherited
	for _, r := range lives {
		b.Past = append(b.Past, past{Peer: r.Peer, Incarnation: r.Incarnation, Steps: r.Steps, Resumed: r.Flags&flock.Resumed != 0})
	}
	return Checkpoint{b}
}

// tellsWho tells whether a checkpoint says which member took which steps. A peer without a
// step of its own still knows those of the others.
func (b behind) tellsWho() bool { return b.Steps > 0 || b.Incarnation > 0 }

// resume restores the state of an earlier life, before this life is announced.
func (b behind) resume(f *flock.Flock) {
	if !b.tellsWho() {
		return
	}
	lives := make([]transport.Record, len(b.Past))
	for i, past := range b.Past {
		lives[i] = transport.Record{Peer: past.Peer, Incarnation: past.Incarnation, Steps: past.Steps}
		if past.Resumed {
			lives[i].Flags = flock.Resumed
		}
	}
	f.Resume(b.Steps, b.Age, lives, b.Inherited, b.Peers)
}

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

// Checkpoint is what lies behind saved parameters: Trainer.Save makes it, of the moment of the
// parameters. A peer that comes back with one trains on from it if the flock has moved on by no more
// than a tenth of its work since, and copies the flock's model otherwise. It is opaque, to be kept
// with MarshalBinary. The zero value says that nothing lies behind them.
type Checkpoint struct{ is behind }

// behind is what a Checkpoint says. The names are those in files, and stay.
type behind struct {
	// Steps are this peer's own. If they are given, as Save does, the peer goes on from them, and the
	// flock from what its members come back with: of the others, Past and Inherited tell it until they
	// are heard of.
	Steps uint64 `json:"steps"`
	// Age are all steps behind the parameters, FlockSteps those of all peers together.
	Age        uint64 `json:"age"`
	FlockSteps uint64 `json:"flock_steps"`
	// Incarnation is the life that saved it: this one is a later one.
	Incarnation uint64 `json:"incarnation"`
	// Past are the lives of other members, at most flock.MaxPast, and Inherited what others have done beside.
	Past      []past `json:"past,omitempty"`
	Inherited uint64 `json:"inherited"`
	// Peers is the most peers that were members at once; 0 is those of Past, and this one.
	Peers uint64 `json:"peers,omitempty"`
	// Orders are what the operator has said, as signed, that still counts: a flock that
	// was paused comes back paused, and a schedule that was changed stays so.
	Orders [][]byte `json:"orders,omitempty"`
	// Description is that of the run, as who began it has signed it. It is passed on as long
	// as Network.Description is no other.
	Description description.Signed `json:"description,omitzero"`
}

// past is what one life of a member has done, or all lives up to one: Resumed tells that Steps
// include what earlier lives of the member had done.
type past struct {
	Peer        transport.PeerID `json:"peer"`
	Incarnation uint64           `json:"incarnation"`
	Steps       uint64           `json:"steps"`
	Resumed     bool             `json:"resumed,omitempty"`
}

// CheckpointOf is what lies behind parameters that were copied when Stats told this, for who keeps no
// more of a peer than that: the peer comes back as who it was, and knows nothing of the others.
func CheckpointOf(s stats.Peer) Checkpoint {
	return Checkpoint{behind{Steps: s.Steps, Age: s.Age, FlockSteps: s.FlockSteps, Incarnation: s.Incarnation}}
}

// Describing is the checkpoint with what a member has said of the run, as signed (Inquiry.Signed), to
// be passed on.
func (c Checkpoint) Describing(run description.Signed) Checkpoint {
	c.is.Description = run
	return c
}

// MarshalBinary is the checkpoint as text, which later releases read.
func (c Checkpoint) MarshalBinary() ([]byte, error) { return json.Marshal(c.is) }

// UnmarshalBinary reads what MarshalBinary has made, and refuses what no peer has.
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
	return nil
}

// done is what lies behind the parameters of this life of a peer now.
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

// tellsWho tells whether a checkpoint says who did what lies behind the model: who has
// made no step of its own knows that of the others.
func (b behind) tellsWho() bool { return b.Steps > 0 || b.Incarnation > 0 }

// resume takes up what an earlier life has left, before anybody hears of this one.
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

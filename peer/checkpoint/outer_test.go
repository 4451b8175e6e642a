package checkpoint

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// outward is a peer that trains with outer momentum.
type outward struct{ *optim.Outer }

func (outward) Self() transport.PeerID { return "me" }
func (outward) Stats() stats.Peer      { return stats.Peer{Steps: 3} }
func (o outward) Save(_ tensor.Vector, s *optim.State) (peer.Checkpoint, error) {
	now := o.State()
	s.Kind, s.Steps = now.Kind, now.Steps
	for name, v := range now.Vectors {
		if len(s.Vectors[name]) == len(v) {
			copy(s.Vectors[name], v)
			continue
		}
		if s.Vectors == nil {
			s.Vectors = map[string]tensor.Vector{}
		}
		s.Vectors[name] = slices.Clone(v)
	}
	return behindOf(3), nil
}

// TestACheckpointOfOuterMomentum has one vector more than one of the optimizer within, and all of them are taken up.
func TestACheckpointOfOuterMomentum(t *testing.T) {
	fresh := func() *optim.Outer {
		return &optim.Outer{Inner: &optim.SGD{Momentum: 0.9}, Every: 2, Rate: 2}
	}
	o, params := fresh(), smallParams(t, 4)
	o.Delta(tensor.Vector{1, 2, 3, 4}, make(tensor.Vector, 4), 0.1)
	k := NewKeeper(KeeperConfig{Into: testFolder(t), Peer: outward{o}, Layout: params.Layout(), Log: zap.NewNop(), Every: time.Hour})
	if err := k.Into.Probe(); err != nil {
		t.Fatal(err)
	}
	if err := k.Last(stats.Peer{Steps: 3}); err != nil {
		t.Fatal(err)
	}
	taken, refused, err := k.Into.Load(params)
	if err != nil || len(refused) > 0 || taken == nil {
		t.Fatal(taken, refused, err)
	}
	again := fresh()
	if err := again.Restore(taken.Optimizer); err != nil {
		t.Fatal(err)
	}
	if got, inner := len(taken.Optimizer.Vectors), len(o.Inner.(optim.Stateful).State().Vectors); got != inner+1 {
		t.Errorf("%d vectors, %d of the optimizer within", got, inner)
	}
	for name, want := range o.State().Vectors {
		if got := again.State().Vectors[name]; !slices.Equal(got, want) || tensor.MaxAbs(want) == 0 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

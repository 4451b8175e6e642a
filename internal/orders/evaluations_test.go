package orders

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestEvaluationsAreHeard: what a member tells of its model stays beside its digests, and false words are not taken.
func TestEvaluationsAreHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, member, _ := observed(t)
		body := func(e control.Evaluation) []byte {
			return control.Digest{Incarnation: 1, Evaluation: e}.Body(wire.ControlEvaluation)
		}
		good := control.Evaluation{Accuracy: 0.75, Loss: 0.5, Trained: time.Minute, Wants: 3}
		for _, c := range []struct {
			what     string
			after    time.Duration
			sequence uint64
			body     []byte
			want     transport.Verdict
		}{
			{"worse", time.Second, 1, body(control.Evaluation{Accuracy: 0.5}), transport.Forward},
			{"good", 150 * time.Millisecond, 2, body(good), transport.Forward},
			{"hasty", 90 * time.Millisecond, 3, body(control.Evaluation{}), transport.Drop},
			{"old", time.Second, 1, body(control.Evaluation{}), transport.Drop},
			{"cut", time.Second, 3, body(good)[1:], transport.Refuse},
			{"above one", time.Second, 3, body(control.Evaluation{Accuracy: 1.5}), transport.Refuse},
		} {
			time.Sleep(c.after)
			if v := s.heard(t, member, wire.ControlEvaluation, c.sequence, c.body); v != c.want {
				t.Errorf("%s: %v, want %v", c.what, v, c.want)
			}
		}
		s.heard(t, member, wire.ControlDigest, 1, control.Digest{Incarnation: 1}.Body(wire.ControlDigest))
		heard := 0
		s.Evaluations(func(id transport.PeerID, e control.Evaluation) {
			heard++
			if good.Heard = e.Heard; id != member.Self() || e != good || time.Since(e.Heard) < time.Second {
				t.Errorf("heard of %s: %+v, want %+v", id, e, good)
			}
		})
		if heard != 1 {
			t.Errorf("heard of %d members", heard)
		}
		if m := s.told(); m[0].Evaluation != good && m[1].Evaluation != good {
			t.Errorf("members: %+v", m)
		}
	})
}

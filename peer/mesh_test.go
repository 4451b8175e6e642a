package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/topology"
)

// mesh averages gradients in the simplest way there is: every peer sends its own to
// every other, in two parts, and makes a step when it has those of all. It knows no
// failures: it is here to drive transfers.
type mesh struct {
	averaging.Machine // none
	self              topology.PeerID
	members           []topology.PeerID
	round             uint64
	waiting           bool
	over              bool
	due               map[topology.PeerID]int // parts of this round that others still owe
	unsent            map[averaging.ExchangeID]collective.Action
	refused           []collective.Action // to be sent again
	last              averaging.ExchangeID
}

const meshParts = 2

func newMesh(config averaging.Config) *mesh {
	return &mesh{self: config.Self, due: map[topology.PeerID]int{}, unsent: map[averaging.ExchangeID]collective.Action{}}
}

func (m *mesh) Traits() collective.Traits { return collective.Traits{Gradients: true, Messages: true} }

func (m *mesh) Decide(_ time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	switch e.Kind {
	case averaging.ViewChanged:
		m.members = m.members[:0]
		for i := range e.Overlay.View().Len() {
			if id := e.Overlay.View().At(i).ID; id != m.self {
				m.members = append(m.members, id)
				if _, known := m.due[id]; !known {
					m.due[id] = meshParts
				}
			}
		}
	case collective.GradientDone:
		m.waiting = true
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Load}, Add: true})
		for _, id := range m.members {
			for part := range meshParts {
				actions = m.send(actions, collective.Action{
					Action: averaging.Action{Peer: id},
					Transfer: collective.Transfer{
						From: collective.Gradient, Into: collective.Sum, Add: true, Part: part, Parts: meshParts, Round: m.round,
					},
				})
			}
		}
	case collective.Offered:
		answer := collective.Action{Action: averaging.Action{Kind: averaging.Accept, Peer: e.Peer, Exchange: e.Exchange, Inbound: true}}
		if e.Transfer.Round != m.round {
			answer.Kind, answer.Reason = averaging.Refuse, averaging.Round
		}
		actions = append(actions, answer)
	case averaging.Refused, averaging.Failed:
		if a, mine := m.unsent[e.Exchange]; mine && !e.Inbound && !m.over {
			m.refused = append(m.refused, a)
			actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, After: time.Millisecond}})
		}
	case averaging.TimerFired:
		for _, again := range m.refused {
			delete(m.unsent, again.Exchange)
			actions = m.send(actions, again)
		}
		m.refused = nil
	case averaging.Finished:
		if e.Inbound {
			m.due[e.Peer]--
		} else {
			delete(m.unsent, e.Exchange)
		}
	case collective.Updated:
		m.round++
		m.waiting = false
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Proceed}})
	case averaging.RunOver:
		m.over = true
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Settled}})
	}
	if m.waiting && m.complete() {
		for _, id := range m.members {
			m.due[id] = meshParts
		}
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Update}})
	}
	return actions
}

func (m *mesh) send(actions []collective.Action, a collective.Action) []collective.Action {
	m.last++
	a.Kind, a.Exchange = collective.Send, m.last
	m.unsent[m.last] = a
	return append(actions, a)
}

func (m *mesh) complete() bool {
	for _, id := range m.members {
		if m.due[id] > 0 {
			return false
		}
	}
	return len(m.unsent) == 0
}

func meshed(change func(int, *peer.Config)) func(int, *peer.Config) {
	return func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Work = peer.Work{}
		c.Training.Exchange.SliceLen = 256
		c.Training.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) { return newMesh(config), nil }
		if change != nil {
			change(i, c)
		}
	}
}

// checkTogether checks that all peers have made the same steps with the mean gradient.
func checkTogether(t *testing.T, flock *peertest.Flock, steps int) {
	t.Helper()
	n := len(flock.Peers)
	mean := common + float64(n-1)/2
	want := mean + (float64(newModel().Vector()[7])-mean)*math.Pow(0.9, float64(steps))
	for i, model := range flock.Models() {
		if math.Abs(float64(model[7])-want) > 1e-3 {
			t.Errorf("peer %d is at %g, want %g", i, model[7], want)
		}
	}
	for i, p := range flock.Peers {
		s := p.Stats()
		if s.Steps != uint64(steps) || s.Exchanges.Failed > 0 || s.Quarantined > 0 {
			t.Errorf("peer %d: %+v", i, s)
		}
		if got, want := s.Exchanges.Initiated, uint64(steps*(n-1)*meshParts); got != want {
			t.Errorf("peer %d: %d transfers completed, want %d", i, got, want)
		}
		if bits := s.Exchanges.BitsPerParameter; bits < 32 || bits > 40 {
			t.Errorf("peer %d: %.2f bits a parameter", i, bits)
		}
	}
}

func constantly(i int, c *peer.Config) {
	c.Training.Schedule = optim.Schedule{Rate: 0.1, Shape: optim.Constant}
}

func TestTransfersInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Configure: meshed(constantly), Link: memnet.Link{Delay: time.Millisecond}})
		flock.TrainSteps(t.Context(), 20, atPace(5*time.Millisecond, towards))
		checkTogether(t, flock, 20)
	})
}

func TestTransfersOverLoopback(t *testing.T) {
	t.Parallel()
	flock := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Configure: meshed(constantly), Loopback: true})
	flock.TrainSteps(t.Context(), 20, towards)
	checkTogether(t, flock, 20)
}

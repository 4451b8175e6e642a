package orders

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	run   = "digits"
	stall = 5 * time.Second
)

// crowd is a flock of known members that has taken some steps.
type crowd struct {
	members []transport.Record
	total   uint64
	site    string
}

func (c *crowd) Total() uint64               { return c.total }
func (c *crowd) Members() (int, int)         { return len(c.members) + 1, 0 }
func (c *crowd) Records() []transport.Record { return c.members }
func (c *crowd) Layout() [32]byte            { return [32]byte{} }
func (c *crowd) SetSite(name string)         { c.site = name }

func (c *crowd) Here(id transport.PeerID) bool {
	return slices.ContainsFunc(c.members, func(r transport.Record) bool { return r.Peer == id })
}

// subject is one that obeys, with nothing around it but a network.
type subject struct {
	*Orders
	flock  crowd
	at     *memnet.Transport
	name   string
	harm   control.Harm
	alarms stats.AlarmSet
	said   []control.Kind // by the operator
}

func (s *subject) Commanded(c control.Command) { s.said = append(s.said, c.Kind) }

func (s *subject) Digest() (control.Digest, uint64) {
	return control.Digest{Name: s.name, Version: "v1", Harm: s.harm, Alarms: s.alarms}, 0
}

func place(t *testing.T, n *memnet.Network, name string) *memnet.Transport {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func obeying(t *testing.T, n *memnet.Network, name string, config control.Config, recalled ...[]byte) *subject {
	t.Helper()
	s := &subject{at: place(t, n, name), name: config.Name}
	described := description.Description{Fields: []description.Field{{Name: "model", Value: "mlp"}}}
	s.Orders = New(config, requests.New(run, s.at, stall, counters.New(), zap.NewNop()), &s.flock, described)
	s.Train(Course{Schedule: rate.Schedule{Rate: 0.1}, Steps: 1000}, s)
	s.Recall(recalled)
	if _, err := s.at.Handle(transport.ProtocolControl, run, func(stream transport.Stream) {
		f := &framed.Stream{}
		if f.Begin(stream, stall); s.Serve(f) != nil {
			stream.Reset()
		}
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// said is a message of a command, signed by somebody.
func said(t *testing.T, by transport.Transport, c control.Command) []byte {
	t.Helper()
	m, err := c.Message()
	if err != nil {
		t.Fatal(err)
	}
	m.Run, m.Author = run, string(by.Self())
	order, err := orderlog.Sign(by, m)
	if err != nil {
		t.Fatal(err)
	}
	return order.Bytes
}

// What the operator says holds trainers, lets them go, changes the course at its step and
// ends the run; what has been replaced changes nothing, wherever it comes from.
func TestOrdersAreObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator, stranger := place(t, n, "operator"), place(t, n, "stranger")
		s := obeying(t, n, "subject", control.Config{Operator: operator.Self()})
		voice := control.Operator{Transport: operator, Run: run}
		send := func(c control.Command) {
			t.Helper()
			if _, err := voice.Send(t.Context(), s.at.Self(), c); err != nil {
				t.Fatal(err)
			}
		}
		send(control.Command{Kind: control.Pause})
		gate := s.Held()
		if gate == nil || !s.Stats().Paused {
			t.Fatal("a pause holds nobody")
		}
		pause, err := orderlog.Said().Ask(t.Context(), stranger, run, s.at.Self(), nil, stall)
		if err != nil || len(pause) != 1 {
			t.Fatalf("it holds %d messages, %v", len(pause), err)
		}
		send(control.Command{Kind: control.Resume})
		if <-gate; s.Held() != nil {
			t.Error("resumed, trainers are held")
		}
		answer, err := orderlog.Said().Ask(t.Context(), stranger, run, s.at.Self(), pause, stall)
		if err != nil || len(answer) != 1 || string(answer[0]) == string(pause[0]) {
			t.Errorf("a replay is answered by %q, %v", answer, err)
		}
		if c := s.Stats(); c.Paused || c.Known != 1 || c.Taken != 2 {
			t.Errorf("after a replay: %+v", c)
		}
		send(control.Command{Kind: control.SetWork, At: 500, Steps: 600})
		if before, after := s.At(499).Target(1), s.At(500).Target(1); before != 1000 || after != 600 {
			t.Errorf("the work is %d before its step and %d at it, want 1000 and 600", before, after)
		}
		send(control.Command{Kind: control.Stop, Why: "enough"})
		if why, stopped := s.Stopped(); !stopped || why != "enough" {
			t.Errorf("stopped: %v, because of %q", stopped, why)
		}
		send(control.Command{Kind: control.Pause})
		if s.Held() != nil {
			t.Error("a run that was stopped holds trainers")
		}
		if len(s.said) != 5 {
			t.Errorf("heard %v", s.said)
		}
		later := obeying(t, n, "later", control.Config{Operator: operator.Self()}, append(s.All(), said(t, stranger, control.Command{Kind: control.Resume, Sequence: 99}))...)
		if _, stopped := later.Stopped(); !stopped || later.Stats().Foreign != 1 {
			t.Errorf("what was recalled is forgotten, or a stranger believed: %+v", later.Stats())
		}
	})
}

// Members tell each other what they know: who was cut off hears of it from any.
func TestMembersTellEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator := place(t, n, "operator")
		knows, asks := obeying(t, n, "knows", control.Config{Operator: operator.Self()}), obeying(t, n, "asks", control.Config{Operator: operator.Self()})
		if verdict, err := knows.judge(said(t, operator, control.Command{Kind: control.Pause, Sequence: 1}), false); verdict != transport.Forward || err != nil {
			t.Fatal(verdict, err)
		}
		asks.flock.members = []transport.Record{{Peer: knows.at.Self()}, {Peer: "gone"}}
		asks.askNext(t.Context()) // of whom one is not there
		asks.askNext(t.Context())
		if asks.Held() == nil {
			t.Error("it has not heard of the pause")
		}
	})
}

// Nobody can make one read more on a stream than an operator can have said.
func TestStreamOfMessagesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		operator := place(t, n, "operator")
		s := obeying(t, n, "subject", control.Config{Operator: operator.Self()})
		messages := make([][]byte, orderlog.Most+1)
		for i := range messages {
			messages[i] = said(t, operator, control.Command{Kind: control.Pause, Sequence: uint64(i + 1)})
		}
		if _, err := orderlog.Said().Ask(t.Context(), operator, run, s.at.Self(), messages, stall); err == nil || s.Stats().Taken != 0 {
			t.Errorf("%d messages were read: %+v", len(messages), s.Stats())
		}
		if _, err := orderlog.Said().Ask(t.Context(), operator, run, s.at.Self(), messages[:orderlog.Most], stall); err != nil {
			t.Errorf("%d messages: %v", orderlog.Most, err)
		}
	})
}

// Who has no operator obeys nobody, and says so to who asks.
func TestWithoutOperatorNobodyIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		s := obeying(t, n, "subject", control.Config{})
		voice := control.Operator{Transport: place(t, n, "operator"), Run: run}
		if _, err := voice.Send(t.Context(), s.at.Self(), control.Command{Kind: control.Pause}); !errors.Is(err, control.ErrOperator) {
			t.Errorf("it answers %v", err)
		}
		if c := s.Stats(); c.Paused || c.Unasked != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// observed are a subject with a name and one member, who has another.
func observed(t *testing.T) (s *subject, member transport.Transport, outsider transport.Transport) {
	t.Helper()
	n := memnet.New(memnet.Config{})
	member = place(t, n, "member")
	s = obeying(t, n, "subject", control.Config{Name: "first", Digests: time.Minute})
	s.flock.members = []transport.Record{{Peer: member.Self()}}
	stop, err := s.at.Handle(transport.ProtocolMembers, run, func(stream transport.Stream) {
		var f framed.Stream
		f.Begin(stream, stall)
		members := []control.Member{{ID: s.at.Self(), Role: topology.Active}, {ID: member.Self(), Role: topology.Passive, Steps: 3, Unreachable: true}}
		own, _ := s.Digest()
		s.Fill(members, own)
		s.Tell(&f, members)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s, member, place(t, n, "outsider")
}

// told are the digests of the subject and its members.
func (s *subject) told() (all []control.Digest) {
	members := []control.Member{{ID: s.at.Self()}}
	for _, r := range s.flock.members {
		members = append(members, control.Member{ID: r.Peer})
	}
	own, _ := s.Digest()
	s.Fill(members, own)
	for _, m := range members {
		if m.ID == s.at.Self() || !m.Digest.Received.IsZero() {
			all = append(all, m.Digest)
		}
	}
	return all
}

// heard has the subject hear what a member says of itself.
func (s *subject) heard(t *testing.T, by transport.Transport, kind wire.ControlKind, sequence uint64, body []byte) transport.Verdict {
	t.Helper()
	order, err := orderlog.Sign(by, wire.Control{Kind: kind, Sequence: sequence, Run: run, Author: string(by.Self()), Body: body})
	if err != nil {
		t.Fatal(err)
	}
	verdict, _ := s.judge(order.Bytes, false)
	return verdict
}

// Who asks from outside is told of all members, with their names, by what they have told of
// themselves; a name cannot steer a terminal.
func TestOutsidersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, member, outsider := observed(t)
		look := func() control.Member {
			t.Helper()
			seen, err := control.Observer{Transport: outsider, Run: run}.Members(t.Context(), s.at.Self())
			if err != nil || len(seen) != 2 || seen[0].ID != s.at.Self() || seen[0].Digest.Name != "first" || seen[0].Digest.Version != "v1" || seen[0].Role != topology.Active {
				t.Fatalf("seen: %+v, %v", seen, err)
			}
			return seen[1]
		}
		one := look()
		if one.Role != topology.Passive || one.Steps != 3 || !one.Unreachable || one.Leaving || !one.Digest.Received.IsZero() || !math.IsNaN(one.Digest.Loss) {
			t.Errorf("before it has told anything: %+v", one)
		}
		name := control.Digest{Incarnation: 1, Name: "se\u202econd", Version: "v2"}.Body(wire.ControlIntroduction)
		if v := s.heard(t, member, wire.ControlIntroduction, 1, append(name, 1)); v != transport.Forward {
			t.Errorf("its introduction: %v", v)
		}
		if len(s.told()) != 1 {
			t.Error("an introduction passes for a digest")
		}
		digest := control.Digest{Incarnation: 1, Steps: 9, Exchanges: 4, Loss: 0.5, Partners: []control.Met{{Partner: s.at.Self(), Exchanges: 2}}}
		s.heard(t, member, wire.ControlDigest, 1, digest.Body(wire.ControlDigest))
		time.Sleep(time.Minute)
		s.heard(t, member, wire.ControlDigest, 2, digest.Body(wire.ControlDigest))
		time.Sleep(time.Second)
		one = look()
		if d := one.Digest; d.Partners != nil || d.Name != "second" || d.Version != "v2" || d.Loss != 0.5 || one.Steps != 9 || time.Since(d.Received) != time.Second || time.Since(d.Exchanged) != time.Minute+time.Second {
			t.Errorf("seen: %+v", one)
		}
		if all := s.told(); len(all) != 2 || all[0].Name+all[1].Name != "firstsecond" && all[0].Name+all[1].Name != "secondfirst" {
			t.Errorf("digests: %+v", all)
		}
		if all := s.told(); !slices.ContainsFunc(all, func(d control.Digest) bool {
			return slices.Equal(d.Partners, []control.Met{{Partner: s.at.Self(), Exchanges: 2}})
		}) {
			t.Errorf("partners of digests: %+v", all)
		}
		for _, c := range []struct {
			what     string
			sequence uint64
			want     transport.Verdict
		}{{"newer", 3, transport.Forward}, {"older", 2, transport.Drop}, {"hasty", 4, transport.Drop}} {
			body := control.Digest{Incarnation: 1, Name: c.what}.Body(wire.ControlIntroduction)
			if v := s.heard(t, member, wire.ControlIntroduction, c.sequence, body); v != c.want {
				t.Errorf("%s: %v", c.what, v)
			}
		}
		if name := look().Digest.Name; name != "newer" {
			t.Errorf("it is called %q", name)
		}
		if v := s.heard(t, member, 19, 9, nil); v != transport.Drop {
			t.Errorf("what a later release says of itself: %v", v)
		}
	})
}

// A name goes with the digests that follow somebody's coming, and then seldom; the digests
// of a flock in which it does come as much later.
func TestNamesAreToldToWhoComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := observed(t)
		told := func(digests int) (names int) {
			for range digests {
				messages, err := s.digests.messages(s)
				if err != nil {
					t.Fatal(err)
				}
				names += len(messages) - 1
			}
			return names
		}
		if n := told(introductions); n != introductions {
			t.Errorf("at the beginning %d of %d digests come with the name", n, introductions)
		}
		if n := told(introduceEvery * 4); n != 4 {
			t.Errorf("of %d digests %d come with the name", introduceEvery*4, n)
		}
		s.flock.members = slices.Repeat(s.flock.members, 500)
		members, _ := s.flock.Members()
		if n := told(1); n != 1 || s.digests.next() != 2*time.Duration(members)*control.DigestShare {
			t.Errorf("somebody has come: %d names, and the next after %v", n, s.digests.next())
		}
		if n := told(introductions); n != introductions-1 || s.digests.next() != time.Duration(members)*control.DigestShare {
			t.Errorf("later: %d names, and the next after %v", n, s.digests.next())
		}
	})
}

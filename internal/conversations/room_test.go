package conversations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	run      = "digits"
	stall    = 5 * time.Second
	deadline = time.Minute
	values   = 1000 // unless a setting says otherwise
	sliceLen = 64   // of which the last slice has a part
)

// room is two members of a run with nothing of a peer around their conversations: a
// proposes, b is asked.
type room struct {
	t       *testing.T
	network *memnet.Network
	a, b    *side
	met     averaging.ExchangeID // the last exchange of meet
}

// pass lets time pass, and then all come to an end that does not take any: what it leaves may be
// looked at without a lock.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// setting is what the sides of a room have in common. The zero value is useful.
type setting struct {
	lanes            int
	traits           collective.Traits
	link             memnet.Link
	values, sliceLen int
	window           int // slices in flight, 2; -1: what the link has room for
	codec            string
	step, deadline   time.Duration
	log              *zap.Logger
	wrap             func(transport.Transport) transport.Transport
}

// withDefaults is the setting with what it leaves open.
func (set setting) withDefaults() setting {
	if set.link == (memnet.Link{}) {
		set.link.Delay = 5 * time.Millisecond
	}
	set.values, set.sliceLen = cmp.Or(set.values, values), cmp.Or(set.sliceLen, sliceLen)
	set.window = cmp.Or(set.window, 2)
	set.step, set.deadline = cmp.Or(set.step, time.Second), cmp.Or(set.deadline, deadline)
	if set.log == nil {
		set.log = zap.NewNop()
	}
	if set.wrap == nil {
		set.wrap = func(t transport.Transport) transport.Transport { return t }
	}
	return set
}

func newRoom(t *testing.T, set setting) *room {
	t.Helper()
	set = set.withDefaults()
	r := &room{t: t, network: memnet.New(memnet.Config{Link: set.link})}
	r.a, r.b = r.side("a", set, 0), r.side("b", set, 1)
	r.a.knows(r.b)
	r.b.knows(r.a)
	return r
}

// side is the conversations of one member, and what stands around them: what a test
// replaces by fakes has their names.
type side struct {
	*Conversations
	t        *testing.T
	at       *memnet.Transport
	loop     *loop
	step     time.Duration // of its trainer
	copies   bool          // it has no model yet
	hello    error         // of every hello
	unfit    error         // what the trainer was told
	record   []byte
	compared int // how often its view was compared with a partner's
}

func (r *room) side(name string, set setting, shift float32) *side {
	r.t.Helper()
	tr, err := r.network.Transport(name)
	if err != nil {
		r.t.Fatal(err)
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{set.values}})
	if err != nil {
		r.t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = 1 + shift/64 + float32(i%5)/8
	}
	life := tasks.NewLife()
	held, err := replica.New(params, replica.Options{SliceLen: set.sliceLen, Clock: life.Now})
	if err != nil {
		r.t.Fatal(err)
	}
	if set.traits.Gradients {
		held.UseGradients()
	}
	s, way := &side{t: r.t, at: tr, loop: &loop{}, step: set.step}, set.wrap(tr)
	who := flock.New(tr.Self())
	seen := presence.New(presence.Config{
		Run: run, Transport: tr, Membership: members{side: s}, Flock: who, Life: life, Log: zap.NewNop(),
	})
	met := links.New(links.Config{
		Codecs: quant.Policy{Codec: set.codec}, Layers: held.JointLayers(), Lanes: set.lanes, Stall: stall, Deadline: set.deadline,
	})
	s.Conversations = New(Config{
		Host: session.Host{
			Run: run, Layout: layout.Hash(), Cut: held.Cut(), Replica: held, Ledger: replica.NewLedger(held), Links: met,
			Lanes: set.lanes, Window: max(set.window, 0), Deadline: set.deadline, Traits: set.traits,
		},
		Membership: members{side: s}, Flock: who, Presence: seen,
		Quarantine: &Quarantine{
			Requests: requests.New(run, way, stall, counters.New(), set.log), Links: met, Life: life, Loop: s.loop, Hooks: s.loop,
		},
		Arrival: s, Model: s, Trainer: s,
	})
	stop, err := way.Handle(transport.ProtocolExchange, run, s.Serve)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		life.BreakOff()
		s.BreakOff()
		s.Wait()
		s.EndMessages(0)
		tr.Close()
		stop()
		life.End()
	})
	return s
}

// forged is the record of a member that another has made up.
const forged = "a record without a signature"

var errForged = errors.New("the record is not signed")

// members is a membership of which conversations want little.
type members struct {
	transport.Membership
	side *side
}

func (m members) Signed() []byte { return m.side.record }

func (m members) Received(_ transport.PeerID, signed []byte) (news bool, err error) {
	if string(signed) == forged {
		err = errForged
	}
	return err == nil, err
}

func (m members) Compare(context.Context, transport.PeerID) error {
	m.side.compared++
	return nil
}

func (s *side) StepTime() time.Duration { return s.step }

func (s *side) Progress() float64 { return 0 }
func (s *side) Unfit(err error)   { s.unfit = err }
func (s *side) Open() bool        { return !s.copies }

func (s *side) Hello(context.Context, transport.PeerID) (wire.Welcome, error) {
	return wire.Welcome{}, s.hello
}

// knows says which others are members, as far as this side knows.
func (s *side) knows(others ...*side) {
	var records []transport.Record
	for _, o := range others {
		records = append(records, transport.Record{Peer: o.at.Self(), Run: run, Incarnation: 1})
	}
	s.Flock.Observe(records, time.Now())
}

// propose has the side propose an exchange to another, as its loop does.
func (s *side) propose(to *side, id averaging.ExchangeID) *Ongoing {
	s.t.Helper()
	x, ok := s.Propose(averaging.Action{Kind: averaging.Propose, Peer: to.at.Self(), Exchange: id, Overlap: 1})
	if !ok {
		s.t.Fatalf("exchange %d is not begun", id)
	}
	return x
}

// meet has a propose an exchange to b, and returns how long it took.
func (r *room) meet() time.Duration {
	r.t.Helper()
	began := time.Now()
	r.met++
	r.a.propose(r.b, r.met)
	synctest.Wait()
	r.a.Wait()
	return time.Since(began)
}

// model is the side's parameters.
func (s *side) model() tensor.Vector {
	m := make(tensor.Vector, s.Host.Replica.Len())
	s.Host.Replica.Consistent(m)
	return m
}

// inDoubt is the number of slices of which the side does not know what became.
func (s *side) inDoubt() int {
	n, _ := s.Host.Ledger.InDoubt()
	return n
}

// conserved checks that the sum of the two models is what it was: all that one side added the
// other took away.
func (r *room) conserved(what string) {
	r.t.Helper()
	a, b := r.a.model(), r.b.model()
	for i := range a {
		if sum := 2 + 1./64 + float64(i%5)/4; math.Abs(float64(a[i])+float64(b[i])-sum) > 1e-6 {
			r.t.Fatalf("%s: the sum of the models at %d is %g, want %g", what, i, float64(a[i])+float64(b[i]), sum)
		}
	}
}

// idle checks that neither side keeps anything of exchanges.
func (r *room) idle(what string) {
	r.t.Helper()
	for name, s := range map[string]*side{"a": r.a, "b": r.b} {
		if served, underway, _ := s.Kept(); served != 0 || underway != 0 || s.Busy() {
			r.t.Errorf("%s: %s keeps %d exchanges that are served, and %d under way", what, name, served, underway)
		}
	}
}

// loop is a machine without a mind: it notes what it hears, and answers what a test says.
type loop struct {
	mu    sync.Mutex
	heard []collective.Event
	ends  []error  // as hooks are told of exchanges; nil of one that was completed
	asked *Ongoing // the last that it was asked about
	// corrections are how much it had heard whenever the membership was corrected.
	corrections []int
	doubts      int // how often it was told that there may be others
	refuses     averaging.Reason
	silent      bool                    // it leaves what it is asked unanswered
	late        chan<- averaging.Action // where it could still answer
	stopped     bool                    // its peer has
}

func (l *loop) Event(e collective.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, e)
	return !l.stopped
}

func (l *loop) Ask(e collective.Event, x *Ongoing, verdict chan<- averaging.Action) bool {
	if !l.Event(e) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = x
	switch {
	case l.silent:
		l.late = verdict
	case l.refuses != 0:
		verdict <- averaging.Action{Kind: averaging.Refuse, Reason: l.refuses}
	default:
		verdict <- averaging.Action{Kind: averaging.Accept, Overlap: 1}
	}
	return true
}

func (l *loop) Doubts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubts++
}

func (l *loop) Corrected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.corrections = append(l.corrections, len(l.heard))
}

func (l *loop) Exchanged(_ collective.Event, _ time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, err)
}

func (l *loop) Quarantined(_ transport.PeerID, term time.Duration, offence error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, fmt.Errorf("kept away for %s: %w", term, offence))
}

// kinds are the kinds of what the machine has heard, in order.
func (l *loop) kinds() (kinds []averaging.EventKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.heard {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// last is what the machine has heard last.
func (l *loop) last() collective.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard) == 0 {
		return collective.Event{}
	}
	return l.heard[len(l.heard)-1]
}

// hears checks what the machine has heard in all, by kind.
func (l *loop) hears(t *testing.T, whose string, want ...averaging.EventKind) {
	t.Helper()
	if got := l.kinds(); !slices.Equal(got, want) {
		t.Errorf("the machine of %s hears %v, want %v", whose, l.heard, want)
	}
}

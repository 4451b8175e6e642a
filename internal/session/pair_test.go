package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// tester is what the helpers need of a test, of package testing or rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// errCut is what both ends of a stream that is cut see, errSlow the end of a wait.
var errCut, errSlow error = errors.New("the stream is cut"), slow{}

type slow struct{}

func (slow) Error() string { return "the partner says nothing" }
func (slow) Timeout() bool { return true }

// setting is what the two peers of a pair have in common.
type setting struct {
	codec          string
	values, slice  int
	lanes, window  int
	traits         collective.Traits
	another        string  // what the passive side has otherwise: run, layout, slice or nothing
	sealed         [2]bool // the transport of A, of P
	stranger, late bool    // the active side is no member; the passive side copies its model
}

// peer is one side of a pair.
type peer struct {
	name   string
	local  session.Host
	ledger *replica.Ledger
	params tensor.Vector
	pair   *pair
}

// Now implements session.Peer.
func (p *peer) Now() session.State {
	return session.State{Incarnation: 1, Steps: 7, View: 9, Ready: !p.pair.set.late || p.name == "A"}
}

// Member implements session.Peer.
func (p *peer) Member(topology.PeerID) bool { return !p.pair.set.stranger }

// Settle implements session.Peer.
func (p *peer) Settle(partner topology.PeerID, exchange uint64, q wire.Status, a wire.Settled) {
	applied, dropped, lost := p.ledger.Settle(string(partner), exchange, q, a)
	p.pair.note("%s settles exchange %d: %d applied, %d dropped, %d lost", p.name, exchange, applied, dropped, lost)
}

// Record implements session.Peer.
func (p *peer) Record() []byte { return []byte("a record of " + p.name) }

// Received implements session.Peer.
func (p *peer) Received(partner topology.PeerID, r wire.Record) error {
	p.pair.note("%s hears %q", p.name, r.Signed)
	return nil
}

// pair is two peers that speak over streams which the test drives. A begins.
type pair struct {
	t    tester
	set  setting
	now  time.Duration
	a, p *peer
	out  strings.Builder

	exchange *session.Exchange
	transfer *session.Transfer
	inquiry  *session.Inquiry
	served   *session.Served
	ways     []*stream // the lanes, the first one first
	answer   averaging.Action
	offer    links.Offer
	pick     func(n int) int // which of n things that can happen happens next
	change   func(from string, frame []byte) []byte
	results  map[string]session.Result
	across   float64       // as A proposes, by view 1
	within   time.Duration // that an exchange may take, if it is partial: each frame takes a millisecond
	quiet    bool
	last     struct { // the frame that was heard last
		header  wire.Header
		payload []byte
	}
}

// stream is one lane of a pair: what each end has yet to read.
type stream struct {
	lane   int
	ends   [2]session.Speaker // A's, P's; nil once over
	queues [2][][]byte        // to A, to P
	closed [2]bool            // no more comes to A, to P
	done   [2]bool
}

func newPair(t tester, set setting) *pair {
	t.Helper()
	x := &pair{t: t, set: set, pick: func(int) int { return 0 }, results: map[string]session.Result{}}
	x.a, x.p = x.peer("A", 0), x.peer("P", 1)
	codec, err := coding.ByName(set.codec)
	if err != nil {
		t.Fatal(err)
	}
	x.offer = links.NewOffer(coding.Uniform(codec))
	x.a.local.Sealed, x.p.local.Sealed = set.sealed[0], set.sealed[1]
	switch set.another {
	case "run":
		x.p.local.Run = "another"
	case "layout":
		x.p.local.Layout[0]++
	case "cut":
		x.p.local.Cut++
	}
	x.exchange, x.transfer = new(session.Exchange), new(session.Transfer)
	x.answer = averaging.Action{Kind: averaging.Accept, Overlap: 1}
	return x
}

func (x *pair) peer(name string, shift float32) *peer {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{x.set.values}})
	if err != nil {
		x.t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = 1 + shift/64 + float32(i%5)/8
	}
	r, err := replica.New(params, replica.Options{SliceLen: x.set.slice})
	if err != nil {
		x.t.Fatal(err)
	}
	if x.set.traits.Gradients {
		r.UseGradients()
		gradient := make(tensor.Vector, x.set.values)
		for i := range gradient {
			gradient[i] = shift + 1
		}
		if err := r.PutRange(gradient, 0, len(gradient), 4); err != nil {
			x.t.Fatal(err)
		}
	}
	p := &peer{name: name, ledger: replica.NewLedger(r), params: make(tensor.Vector, x.set.values), pair: x}
	p.local = session.Host{
		Run: "run", Layout: layout.Hash(), Cut: r.Cut(), Replica: r, Ledger: p.ledger,
		Links: links.New(links.Config{Lanes: x.set.lanes, Stall: 10 * time.Second, Deadline: 30 * time.Second}),
		Lanes: x.set.lanes, Window: x.set.window, Deadline: 30 * time.Second, Traits: x.set.traits, Peer: p,
	}
	return p
}

func (x *pair) note(format string, args ...any) {
	if !x.quiet {
		fmt.Fprintf(&x.out, "  "+format+"\n", args...)
	}
}

// begin opens a stream, over which a conversation of the first peer begins with the other.
func (x *pair) begin(c session.Conversation, from, to *peer) {
	x.served = &session.Served{}
	x.served.Begin(&to.local, x.now, topology.PeerID(from.name))
	s := &stream{ends: [2]session.Speaker{c, x.served}}
	if from == x.p {
		s.ends[0], s.ends[1] = x.served, c
	}
	x.ways = []*stream{s}
}

// propose has A propose an exchange.
func (x *pair) propose(id averaging.ExchangeID) {
	x.exchange.Begin(&x.a.local, x.now, averaging.Action{Kind: averaging.Propose, Peer: "P", Exchange: id, Overlap: 1, Within: x.within, Across: x.across, View: 1}, x.offer)
	x.begin(x.exchange, x.a, x.p)
}

// run drives both ends until nothing can happen, or so many frames have come.
func (x *pair) run(frames int) {
	for frames != 0 {
		var can []func() bool // each tells whether a frame has come
		for _, s := range x.ways {
			for side := range 2 {
				if !s.done[side] && x.speaks(s, side) {
					can = append(can, func() bool { return false })
					continue
				}
				if s.done[side] || len(s.queues[side]) == 0 && !s.closed[side] {
					continue
				}
				can = append(can, func() bool { return x.hear(s, side) })
			}
		}
		if len(can) == 0 {
			return
		}
		if can[x.pick(len(can))]() {
			frames--
		}
	}
}

// speaks has one end say what it has to, and tells whether it has said anything.
func (x *pair) speaks(s *stream, side int) (said bool) {
	var buf []byte
	for {
		frame, do := s.ends[side].Next(x.now, &buf)
		switch do {
		case session.Wait:
			return said
		case session.Send:
			x.send(s, side, frame)
		case session.CloseWrite:
			s.closed[1-side] = true
		case session.Enter:
		case session.Ask:
			x.note("%s asks its machine: %s", name(side), x.served.Event())
			x.served.Answer(x.now, x.answer)
		case session.Agreed:
			if c, ok := s.ends[side].(interface{ Event() collective.Event }); ok && side == 0 {
				x.note("A tells its machine: %s", c.Event())
			}
		case session.Slices:
			if side == 0 {
				x.open(s)
			}
		case session.Lane:
			s.ends[side] = x.served.Lane(s.lane)
		case session.Tell:
			x.word(side)
		case session.Over:
			x.over(s, side)
			return true
		}
		said = true
	}
}

// open opens the further lanes.
func (x *pair) open(first *stream) {
	for i := 1; i < x.exchange.Lanes(); i++ {
		further := &session.Served{}
		further.Begin(&x.p.local, x.now, "A")
		x.ways = append(x.ways, &stream{lane: i, ends: [2]session.Speaker{&sending{x.exchange.Lane(i), nil}, further}})
	}
}

func (x *pair) send(s *stream, side int, frame []byte) {
	frame = bytes.Clone(frame)
	if x.change != nil {
		frame = x.change(name(side), frame)
	}
	x.note("%s → %s %s", name(side), name(1-side), describe(s.lane, frame))
	s.queues[1-side] = append(s.queues[1-side], frame)
}

// hear has one end take the next frame, or the end of the stream.
func (x *pair) hear(s *stream, side int) bool {
	if len(s.queues[side]) == 0 {
		s.closed[side] = false
		s.ends[side].Close()
		return false
	}
	frame := s.queues[side][0]
	s.queues[side] = s.queues[side][1:]
	reader := wire.NewReader(bytes.NewReader(frame), 0)
	reader.Sealed = x.set.sealed[side]
	h, payload, err := reader.Next()
	if err != nil {
		s.ends[side].Fail(err)
		return true
	}
	x.last.header, x.last.payload = h, payload
	if x.within > 0 {
		x.now += time.Millisecond
	}
	s.ends[side].Receive(x.now, h, payload)
	return true
}

// word takes the frame that P has heard last for a word.
func (x *pair) word(side int) {
	word, heard, err := session.MessageOf(&x.p.local, x.now, "A", x.last.header, x.last.payload)
	switch {
	case err != nil:
		x.note("%s cannot read it: %s", name(side), err)
	case heard:
		x.note("%s tells its machine: %s", name(side), collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: "A"}, Message: word})
	default:
		x.note("%s does not hear it", name(side))
	}
}

// over takes the end of one side of a stream: closed, or reset.
func (x *pair) over(s *stream, side int) {
	s.done[side] = true
	s.queues[side] = nil
	if lane, further := s.ends[side].(*sending); further && lane.err != nil {
		x.cut(lane.err)
		return
	}
	ending := session.Closing
	if lane, further := s.ends[side].(*session.ServedLane); further {
		ending = lane.Ending()
	}
	if c, ok := s.ends[side].(session.Conversation); ok {
		if x.lanesLeft(s, side) { // the other lanes first
			s.done[side] = false
			s.ends[side] = &held{c, x, side}
			return
		}
		ending = x.end(c, side).Ending
	}
	if ending == session.Resetting {
		if !s.done[1-side] {
			s.ends[1-side].Fail(errCut)
		}
		return
	}
	s.closed[1-side] = true
}

// lanesLeft tells whether other lanes of a conversation are still at work.
func (x *pair) lanesLeft(s *stream, side int) bool {
	for _, other := range x.ways[1:] {
		if s == x.ways[0] && !other.done[side] {
			return true
		}
	}
	return false
}

// end ends a conversation and notes what has become of it.
func (x *pair) end(c session.Conversation, side int) session.Result {
	r := c.End(x.now, session.Seen{Sent: 1000, Received: 1000})
	outcome := [...]string{"has nothing to report", "has finished", "has failed", "was refused", "has declined", "was asked nothing that makes sense"}[r.Outcome]
	line := fmt.Sprintf("%s %s and %s", name(side), outcome, [...]string{"closes", "waits until that is read", "resets"}[r.Ending])
	if r.Outcome == session.Finished && r.Distance > 0 {
		line += fmt.Sprintf(", distance %.4f", r.Distance)
	}
	if r.Waited > 0 {
		line += fmt.Sprintf(", waited for %s for the first slice", r.Waited)
	}
	if r.Retransmitted > 0 {
		line += fmt.Sprintf(", %d blocks again", r.Retransmitted)
	}
	if r.InDoubt > 0 {
		line += fmt.Sprintf(", %d slices in doubt", r.InDoubt)
	}
	if r.Quarantine > 0 {
		line += fmt.Sprintf(", keeps the partner away for %s", r.Quarantine)
	}
	if r.Err != nil {
		line += ": " + r.Err.Error()
	}
	x.note("%s", line)
	x.results[name(side)] = r
	return r
}

// cut ends all streams.
func (x *pair) cut(err error) {
	for _, s := range x.ways {
		for side, done := range s.done {
			if !done {
				s.queues[side] = nil
				s.ends[side].Fail(err)
			}
		}
	}
}

func name(side int) string { return "AP"[side : side+1] }

package orders

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// topicPrefix plus the run's name is the topic of its control messages.
	topicPrefix = "murmuration/1/"
	// askEvery is the time between two members that are asked for the operator's messages,
	// in case gossip has lost some.
	askEvery = 10 * time.Second
)

// Faults of a control message.
var (
	errOversize  = errors.New("a control message that is too large")
	errMalformed = errors.New("a control message that cannot be read")
	errForeign   = errors.New("a control message of another run or operator")
	errForged    = errors.New("a control message whose signature is wrong")
)

// Described is this peer's description of the run; differences from the operator's announcement are logged.
type Described interface {
	Value(name string) (value string, ok bool)
}

// Listener is called for each message that was not known before.
type Listener interface{ Commanded(control.Command) }

// Flock is the present members and the progress of the run.
type Flock interface {
	Total() uint64
	Members() (present, lost int)
	Here(transport.PeerID) bool
	Records() []transport.Record
	Layout() [32]byte    // of what is trained here, zeros if nothing is
	SetSite(name string) // at which this peer says that it is
}

// Orders holds the operator's messages and the members' digests. Safe for concurrent use.
type Orders struct {
	will
	config    control.Config // which operator the peer obeys
	requests  *requests.Requests
	described Described
	flock     Flock
	digests   digests
	topic     transport.Topic // nil if the transport has no topics
	counts    counts
	warned    sync.Once // logs the first message of an operator that is not obeyed
	listener  atomic.Pointer[Listener]

	asked     int           // members so far
	evaluated atomic.Uint64 // messages by Evaluated
	asks      atomic.Bool   // a member was asked what the operator had said before this peer came
	told      atomic.Bool   // and one has said it
	leave     atomic.Bool   // the operator has asked this peer to leave
}

// New makes Orders without any message.
func New(config control.Config, r *requests.Requests, flock Flock, described Described) *Orders {
	switch {
	case config.Digests == 0 && config.Operator == "":
		config.Digests = -1
	case config.Digests == 0:
		config.Digests = control.DefaultDigests
	}
	o := &Orders{
		config: config, requests: r, described: described, flock: flock,
		digests: digests{run: r.Run, identity: r.Transport, every: config.Digests, flock: flock, received: make(map[transport.PeerID]latest)},
	}
	o.plan(0)
	return o
}

// Recall restores the messages of an earlier life, as All returned them. Those not signed
// by the present operator are left out.
func (o *Orders) Recall(messages [][]byte) {
	for _, message := range messages[:min(len(messages), orderlog.Most)] {
		o.judge(message, true)
	}
}

// Train sets the course without orders for a trainer of this peer, and its listener.
func (o *Orders) Train(begun Course, listener Listener) {
	o.listener.Store(&listener)
	o.begin(begun, o.flock.Total())
}

// Rest notes that this peer no longer trains.
func (o *Orders) Rest() { o.listener.Store(nil) }

// Begin joins the run's topic. Without a topic, or if that fails, the operator's messages
// come from members that are asked.
func (o *Orders) Begin() {
	if o.config.Operator == "" && o.config.Digests < 0 {
		return
	}
	topic, err := o.requests.Transport.Topic(topicPrefix+o.requests.Run, nil, o.receive)
	if err != nil {
		o.requests.Log.Warn("no topic for control messages: they come from members that are asked, which is slower", zap.Error(err))
		return
	}
	o.topic = topic
}

// Run publishes digests and asks members, until the context ends.
func (o *Orders) Run(ctx context.Context, own Own) {
	if o.topic != nil {
		defer func() {
			if err := o.topic.Close(); err != nil {
				o.requests.Log.Debug("leaving the topic of control messages", zap.Error(err))
			}
		}()
	}
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	digest := time.NewTimer(o.digests.first())
	defer digest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-digest.C:
			messages, err := o.digests.messages(own)
			if err != nil {
				o.requests.Log.Warn("this peer cannot tell others of itself", zap.Error(err))
				messages = nil
			}
			for _, message := range messages {
				o.publish(message)
			}
			digest.Reset(o.digests.next())
		case <-ask.C:
			o.askNext(ctx)
		}
	}
}

// askNext asks one member after the other.
func (o *Orders) askNext(ctx context.Context) {
	members := o.flock.Records()
	if len(members) == 0 {
		return
	}
	o.asked++
	member := members[o.asked%len(members)].Peer
	ctx, cancel := context.WithTimeout(ctx, o.requests.Stall)
	defer cancel()
	if err := o.ask(ctx, member); err != nil {
		o.requests.Log.Debug("asking a member what the operator has said", zap.String("peer", string(member)), zap.Error(err))
	}
}

// Ask sends the operator's messages to a member, and receives those that it knows. What is heard of members until the first
// has said all was said before this peer came: it asks no peer of this life to leave.
func (o *Orders) Ask(ctx context.Context, member transport.PeerID) error {
	o.asks.Store(true)
	return o.ask(ctx, member)
}

// early tells whether members may say what the operator has said before this peer came.
func (o *Orders) early() bool { return o.asks.Load() && !o.told.Load() }

func (o *Orders) ask(ctx context.Context, member transport.PeerID) error {
	if o.config.Operator == "" {
		return nil
	}
	before := o.early()
	answers, err := orderlog.Said().Ask(ctx, o.requests.Transport, o.requests.Run, member, o.All(), o.requests.Stall)
	for _, message := range answers {
		_ = o.passOn(message, before) // faults have been counted
	}
	o.told.CompareAndSwap(false, err == nil)
	return err
}

// Serve answers a member or the operator. An error means that nothing could be read.
func (o *Orders) Serve(t *framed.Stream) error {
	messages, err := orderlog.Said().Receive(t)
	if err != nil {
		return err
	}
	before := o.early() && o.flock.Here(t.Remote()) // a member says all that it knows, the operator what is new
	for _, message := range messages {
		fault := o.passOn(message, before)
		if fault == nil {
			continue
		}
		reason, detail := wire.ReasonProtocol, fault.Error()
		if errors.Is(fault, errForeign) {
			reason = wire.ReasonOperator
			if o.config.Operator == "" {
				detail = "this peer obeys no operator"
			}
		}
		o.requests.Log.Warn("refused a control message", zap.String("peer", string(t.Remote())), zap.Error(fault))
		t.Refuse(0, reason, detail)
		return nil
	}
	o.told.CompareAndSwap(false, before)
	orderlog.Said().Answer(t, o.All())
	return nil
}

// passOn takes a message from a stream, and publishes it if others may not know it.
func (o *Orders) passOn(message []byte, before bool) error {
	verdict, fault := o.judge(message, before)
	if verdict == transport.Forward {
		o.publish(message)
	}
	return fault
}

// publish spreads a message on the topic.
func (o *Orders) publish(message []byte) {
	if o.topic == nil {
		return
	}
	if err := o.topic.Publish(message); err != nil {
		o.requests.Log.Debug("publishing a control message", zap.Error(err))
	}
}

// receive judges a message on the topic.
func (o *Orders) receive(_ transport.PeerID, message []byte) transport.Verdict {
	verdict, _ := o.judge(message, false)
	return verdict
}

// judge takes a message that is valid and new; before tells that it was said before this life of the peer. The error
// is the fault of a message that is not to be passed on.
func (o *Orders) judge(message []byte, before bool) (transport.Verdict, error) {
	var m wire.Control
	switch {
	case len(message) > wire.MaxControl:
		o.counts.oversize.Add(1)
		return transport.Refuse, errOversize
	case m.Decode(message) != nil:
		o.counts.malformed.Add(1)
		return transport.Refuse, errMalformed
	case m.Run != o.requests.Run:
		o.counts.foreign.Add(1)
		return transport.Refuse, errForeign
	case m.Kind.ByPeer():
		return o.digests.judge(m, &o.counts), nil
	case o.config.Operator == "":
		o.counts.unasked.Add(1)
		o.warned.Do(func() {
			o.requests.Log.Warn("ignoring control messages of this run's operator: this peer obeys nobody. Start it with the operator's id if it should",
				zap.String("operator", m.Author))
		})
		return transport.Drop, errForeign
	case m.Author != string(o.config.Operator):
		o.counts.foreign.Add(1)
		return transport.Refuse, errForeign
	}
	return o.judgeOrder(message, before)
}

// judgeOrder judges a message that claims to be the operator's.
func (o *Orders) judgeOrder(message []byte, before bool) (transport.Verdict, error) {
	order := orderlog.Order{Bytes: bytes.Clone(message)}
	if err := order.Decode(order.Bytes); err != nil { // so that the body shares the memory of the kept bytes
		return transport.Refuse, errMalformed
	}
	if !o.wants(order) {
		o.counts.known.Add(1)
		return transport.Drop, nil
	}
	if !o.requests.Transport.Verify(o.config.Operator, order.Signed(), order.Signature[:]) {
		o.counts.forged.Add(1)
		o.requests.Log.Warn("ignoring a control message that the operator has not signed", zap.Uint64("sequence", order.Sequence))
		return transport.Refuse, errForged
	}
	command, err := control.CommandOf(order.Control)
	switch {
	case errors.Is(err, control.ErrKind):
		return transport.Forward, nil // for members that know it
	case err != nil:
		o.counts.malformed.Add(1)
		o.requests.Log.Warn("ignoring a control message: the operator says what cannot be", zap.Error(err))
		return transport.Drop, nil
	}
	if !o.obey(order, command, o.flock.Total()) {
		o.counts.known.Add(1)
		return transport.Drop, nil
	}
	o.counts.taken.Add(1)
	o.tell(command)
	o.change(command, before)
	return transport.Forward, nil
}

// tell logs a command of the operator, and calls the hook.
func (o *Orders) tell(command control.Command) {
	o.requests.Log.Info("the operator says", zap.Stringer("command", command.Kind), zap.Uint64("sequence", command.Sequence),
		zap.Uint64("at_flock_step", command.At), zap.String("why", command.Why))
	if command.Kind == control.Announce {
		o.compare(command)
	}
	if listener := o.listener.Load(); listener != nil {
		(*listener).Commanded(command)
	}
}

// change passes on what a command says of members that no earlier one has said.
func (o *Orders) change(c control.Command, before bool) {
	changes := ofProgram(o.unheard(c), c, o.requests.Transport.Self(), before, o.flock.SetSite)
	if len(changes) == 0 {
		return
	}
	if o.config.Changed == nil {
		o.requests.Log.Warn("the operator asks members to leave, to train or not, or changes who may take part or who gets how many rows, which this peer's program does not do", zap.String("why", c.Why))
		return
	}
	if slices.ContainsFunc(changes, func(n control.Change) bool { return n.Do == control.Drain }) {
		o.leave.Store(true)
	}
	o.config.Changed(c.Why, changes)
}

// Drained tells whether the operator has asked this peer to leave.
func (o *Orders) Drained() bool { return o != nil && o.leave.Load() }

// compare logs differences between this peer's settings and those that the operator announces.
func (o *Orders) compare(announced control.Command) {
	if here, none := o.flock.Layout(), [32]byte{}; here != none && announced.Layout != none && announced.Layout != here {
		o.requests.Log.Warn("the operator announces another layout of parameters than this peer has: start it with the run's model")
	}
	for _, name := range slices.Sorted(maps.Keys(announced.Settings)) {
		if here, ok := o.described.Value(name); ok && here != announced.Settings[name] {
			o.requests.Log.Warn("this peer was started otherwise than the operator announces",
				zap.String("setting", name), zap.String("announced", announced.Settings[name]), zap.String("here", here))
		}
	}
}

// Fill adds to members their last digests, with Received zero if there is none; own is this peer's own.
func (o *Orders) Fill(members []control.Member, own control.Digest) { o.digests.fill(members, own) }

// Evaluated tells the others of this peer's model on held-out data. They pass on one in control.EvaluationSpacing.
func (o *Orders) Evaluated(incarnation uint64, e control.Evaluation) {
	m := wire.Control{Kind: wire.ControlEvaluation, Sequence: o.evaluated.Add(1), Run: o.requests.Run, Author: string(o.requests.Transport.Self())}
	m.Body = control.Digest{Incarnation: incarnation, Evaluation: e}.Body(m.Kind)
	if order, err := orderlog.Sign(o.requests.Transport, m); err != nil {
		o.requests.Log.Warn("this peer cannot tell others how good its model is", zap.Error(err))
	} else {
		o.publish(order.Bytes)
	}
}

// Evaluations calls hear with the last evaluation of each other member that has told one. hear must not call Orders.
func (o *Orders) Evaluations(hear func(transport.PeerID, control.Evaluation)) {
	o.digests.evaluations(hear)
}

// Tells tells whether this peer takes part in the run's topic, by which members tell of themselves.
func (o *Orders) Tells() bool { return o.config.Operator != "" || o.config.Digests > 0 }

// Tell answers a question from outside with these members.
func (o *Orders) Tell(t *framed.Stream, members []control.Member) {
	now, encoded := time.Now(), make([][]byte, len(members))
	for i, m := range members {
		if m.ID != o.requests.Transport.Self() {
			m.Partners = nil // they report their partners themselves
		}
		encoded[i] = m.Encoded(now)
	}
	orderlog.Members().Answer(t, encoded)
}

// Stats counts the outcomes of control messages here.
func (o *Orders) Stats() stats.Control {
	s := o.counts.stats(o.Held() != nil)
	_, s.Stopped = o.Stopped()
	if o.topic != nil {
		s.Neighbours = o.topic.Neighbours()
	}
	return s
}

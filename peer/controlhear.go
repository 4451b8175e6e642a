package peer

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// controlCounts counts what became of control messages.
type controlCounts struct {
	taken, known, malformed, oversize, foreign, forged, unasked, hasty atomic.Uint64
}

// ControlStats tells what became of the control messages that a peer was sent, and
// what the operator wants now.
type ControlStats struct {
	// Taken counts messages of the operator and digests that said something new.
	Taken uint64
	// Known counts repetitions, and what something newer had replaced.
	Known uint64
	// Malformed, Oversize, Foreign (of another run, another operator, or no member)
	// and Forged (with a wrong signature) count what was ignored and not passed on,
	// Hasty digests that came sooner than a member may send them.
	Malformed, Oversize, Foreign, Forged, Hasty uint64
	// Unasked counts operators' messages at a peer that has none.
	Unasked uint64
	// Neighbours is the number of connected processes that pass messages on.
	Neighbours int
	// Paused and Stopped tell what the operator wants.
	Paused, Stopped bool
}

// Control tells what became of control messages here.
func (p *Peer) Control() ControlStats {
	c := p.control
	s := ControlStats{
		Taken: c.counts.taken.Load(), Known: c.counts.known.Load(), Malformed: c.counts.malformed.Load(),
		Oversize: c.counts.oversize.Load(), Foreign: c.counts.foreign.Load(), Forged: c.counts.forged.Load(),
		Unasked: c.counts.unasked.Load(), Hasty: c.counts.hasty.Load(), Paused: c.paused.Load(), Stopped: c.stopped(),
	}
	if c.topic != nil {
		s.Neighbours = c.topic.Neighbours()
	}
	return s
}

// Announcement is what the operator has said of the run, if it has.
func (p *Peer) Announcement() (Command, bool) {
	p.control.mu.Lock()
	m, ok := p.control.standing.newest(wire.ControlAnnounce)
	p.control.mu.Unlock()
	if !ok {
		return Command{}, false
	}
	command, err := commandOf(m.Control)
	return command, err == nil
}

// hear judges what the topic brings.
func (c *control) hear(_ seam.PeerID, message []byte) seam.Verdict {
	verdict, _ := c.judge(message)
	return verdict
}

// judge takes what is good and says something new. The fault says what is wrong with
// a message that is not to be passed on.
func (c *control) judge(message []byte) (seam.Verdict, error) {
	var m wire.Control
	switch {
	case len(message) > wire.MaxControl:
		c.counts.oversize.Add(1)
		return seam.Refuse, errControlOversize
	case m.Decode(message) != nil:
		c.counts.malformed.Add(1)
		return seam.Refuse, errControlMalformed
	case m.Run != c.peer.config.Run:
		c.counts.foreign.Add(1)
		return seam.Refuse, errControlForeign
	case m.Kind.ByPeer():
		return c.judgeDigest(m), nil
	case c.config.Operator == "":
		c.counts.unasked.Add(1)
		c.word.Do(func() {
			c.log.Warn("ignoring control messages of this run's operator: this peer obeys nobody. Start it with the operator's id if it should",
				zap.String("operator", m.Author))
		})
		return seam.Drop, errControlForeign
	case m.Author != string(c.config.Operator):
		c.counts.foreign.Add(1)
		return seam.Refuse, errControlForeign
	}
	return c.judgeOrder(m, message)
}

// What can be wrong with a control message.
var (
	errControlOversize  = errors.New("a control message that is too large")
	errControlMalformed = errors.New("a control message that cannot be read")
	errControlForeign   = errors.New("a control message of another run or operator")
	errControlForged    = errors.New("a control message whose signature is wrong")
)

// judgeOrder judges a message that claims to be the operator's.
func (c *control) judgeOrder(m wire.Control, message []byte) (seam.Verdict, error) {
	o := ordered{Control: m, bytes: bytes.Clone(message)}
	if err := o.Decode(o.bytes); err != nil { // so that the body is a part of what is kept
		return seam.Refuse, errControlMalformed
	}
	if !c.wants(o) {
		c.counts.known.Add(1)
		return seam.Drop, nil
	}
	if !c.peer.transport.Verify(c.config.Operator, m.Signed(), m.Signature[:]) {
		c.counts.forged.Add(1)
		c.log.Warn("ignoring a control message that the operator has not signed", zap.Uint64("sequence", m.Sequence))
		return seam.Refuse, errControlForged
	}
	command, err := commandOf(o.Control)
	switch {
	case errors.Is(err, errKind):
		return seam.Forward, nil // for those who know it
	case err != nil:
		c.counts.malformed.Add(1)
		c.log.Warn("ignoring a control message: the operator says what cannot be", zap.Error(err))
		return seam.Drop, nil
	}
	if !c.obey(o, command) {
		c.counts.known.Add(1)
		return seam.Drop, nil
	}
	c.counts.taken.Add(1)
	c.told(command)
	return seam.Forward, nil
}

func (c *control) wants(o ordered) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing.wants(o)
}

// obey keeps a message and does what it says. It reports false if another goroutine
// has been faster.
func (c *control) obey(o ordered, command Command) bool {
	total := c.peer.flock.total(c.peer.counters.steps.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.standing.wants(o) {
		return false
	}
	c.standing.take(o)
	switch command.Kind {
	case Pause, Resume:
		c.hold()
	case Stop:
		newest, _ := c.standing.newest(wire.ControlStop)
		if last, err := commandOf(newest.Control); err == nil {
			c.ended.Store(&last.Why)
		}
		c.hold()
	case SetSchedule, SetPace, SetWork:
		c.settle(total)
	}
	return true
}

// hold closes or opens the gate as the newest word on it says; a run that is
// over holds nobody. The lock is held.
func (c *control) hold() {
	paused := false
	if newest, ok := c.standing.newest(wire.ControlHold); ok && !c.stopped() && !c.peer.counters.over.Load() {
		command, err := commandOf(newest.Control)
		paused = err == nil && command.Kind == Pause
	}
	switch {
	case paused && c.gate == nil:
		c.gate = make(chan struct{})
		c.paused.Store(true)
	case !paused && c.gate != nil:
		c.paused.Store(false)
		close(c.gate)
		c.gate = nil
	}
}

// told logs what the operator has said, and calls the hook.
func (c *control) told(command Command) {
	c.log.Info("the operator says", zap.Stringer("command", command.Kind), zap.Uint64("sequence", command.Sequence),
		zap.Uint64("at_flock_step", command.At), zap.String("why", command.Why))
	if command.Kind == Announce {
		c.compare(command)
	}
	if c.config.Heard == nil {
		return
	}
	c.hearing.Lock()
	defer c.hearing.Unlock()
	c.config.Heard(command)
}

// compare logs where this peer was started otherwise than the operator announces.
func (c *control) compare(announced Command) {
	if announced.Layout != [32]byte{} && announced.Layout != c.peer.layout {
		c.log.Warn("the operator announces another layout of parameters than this peer has: start it with the run's model")
	}
	names := make([]string, 0, len(c.config.Settings))
	for name := range c.config.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if said, ok := announced.Settings[name]; ok && said != c.config.Settings[name] {
			c.log.Warn("this peer was started otherwise than the operator announces",
				zap.String("setting", name), zap.String("announced", said), zap.String("here", c.config.Settings[name]))
		}
	}
}

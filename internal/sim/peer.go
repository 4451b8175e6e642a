package sim

import (
	"bytes"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/trainer"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// peer carries out what its machine decides.
type peer struct {
	world       *World
	index       int
	id          topology.PeerID
	unreachable bool
	place       topology.Place
	stage       int // that it holds, in a pipeline
	counts      Counts

	incarnation uint64
	seen        *topology.Overlay // the other members, as the peer knows them
	copied      bool              // it began with a copy of another's model
	arriving    bool              // copies a model: it is no member yet
	gone        bool              // does nothing: it has left, has crashed or has not come yet
	missed      bool              // the others know that it has gone

	// Nil and zero of a peer that has yet to come.
	replica       *replica.Replica
	driver        driver
	conversations conversations
	trainer       training
	staged        *staged // in a pipeline
}

func newPeer(w *World, index int, m Member, incarnation uint64) *peer {
	machine := collective.Of(m.Machine)
	traits := machine.Traits()
	if traits.Size != nil {
		traits.Size.SetLength(m.Replica.SharedLen(), traits.Gradients && w.offers[m.Stage].Rounds())
	}
	p := &peer{
		world: w, index: index, id: m.ID, unreachable: m.Unreachable, place: m.Place, stage: m.Stage, incarnation: incarnation, replica: m.Replica,
	}
	p.driver = driver{peer: p, machine: machine}
	p.conversations = newConversations(p, m, traits)
	p.trainer = training{peer: p, gradients: traits.Gradients, servesOnly: traits.ServesOnly}
	p.trainer.Trainer = trainer.New(trainer.Config{
		Replica: m.Replica, Optimizer: m.Optimizer, Traits: traits, Pace: w.config.Pace, Run: &p.trainer, Lent: true,
	})
	if w.config.Pipeline != nil {
		p.staged = newStaged(p)
	}
	return p
}

func (p *peer) now() time.Duration { return p.world.queue.Now() }

// begin shows the peer its flock and lets it train.
func (p *peer) begin() {
	if p.gone {
		return // it has yet to come
	}
	p.look()
	if !p.trainer.servesOnly {
		p.trainer.begin(0)
	}
}

func (p *peer) carryOut(a collective.Action) {
	switch a.Kind {
	case averaging.Proceed:
		p.trainer.proceed(a.Batch, a.Version)
	case averaging.Propose:
		p.conversations.propose(a.Action)
	case averaging.Accept, averaging.Refuse:
		if t := p.conversations.running[key{a.Peer, a.Exchange, true}]; t != nil {
			t.answer(a.Action)
		}
	case averaging.Abort:
		if t := p.conversations.running[key{a.Peer, a.Exchange, a.Inbound}]; t != nil {
			t.breakOff(session.ErrAborted)
		}
	case averaging.SetTimer:
		p.driver.setTimer(a.Action)
	case collective.Send:
		p.conversations.give(a)
	case collective.Load:
		if err := p.replica.Load(a.Transfer.Part, a.Transfer.Parts, a.Add, a.Forget); err != nil {
			p.broke(p.index, fmt.Errorf("step %d: the gradient is left out: %w", p.counts.Steps, err))
		}
	case collective.Clear:
		p.replica.Clear(a.Transfer.Part, a.Transfer.Parts)
	case collective.Update:
		p.trainer.update(a)
		p.updated(a)
	case collective.Pool:
		p.replica.Pool(a.Weight)
	case collective.Adopt:
		p.replica.Adopt()
		p.updated(a)
	case collective.Commit:
		p.replica.Commit()
	case collective.Tell:
		p.message(a)
	case averaging.Halt:
		p.trainer.halted = true
		p.broke(p.index, fmt.Errorf("%s: %w", a.Reason, errHalted))
	}
}

// updated tells the machine that its update of the parameters is done.
func (p *peer) updated(a collective.Action) {
	p.counts.Updates++
	p.driver.report(collective.Event{Event: averaging.Event{Kind: collective.Updated}, Transfer: a.Transfer})
}

// broke calls the world's hook with an error of a partner.
func (p *peer) broke(partner int, err error) {
	if hook := p.world.config.Hooks.Broke; hook != nil {
		hook(p.index, partner, err)
	}
}

// look passes the view to the peer's machine, unless the machine has it or the peer is no member.
func (p *peer) look() {
	overlay := p.world.overlays[p.stage]
	if p.staged != nil {
		p.staged.look()
	}
	if p.gone || p.seen == overlay || !overlay.View().Has(p.id) {
		return
	}
	p.seen = overlay
	p.driver.tell(averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
}

// vanish ends all activity of the peer. The caller's end is applied to each of its streams.
func (p *peer) vanish(end func(*Stream)) {
	if p.staged != nil {
		p.staged.close()
	}
	p.gone = true
	p.conversations.vanish(end)
}

// loseTouch breaks off what runs with a peer that has gone.
func (p *peer) loseTouch(gone *peer) {
	if p.gone {
		return
	}
	p.conversations.lose(gone.index)
	p.driver.tell(averaging.Event{Kind: averaging.PeerLost, Peer: gone.id})
}

// message sends a machine's message as a frame outside of any stream. It is lost if the
// line is cut before it arrives, and may overtake stream data whose segments are sent
// again.
func (p *peer) message(a collective.Action) {
	w := p.world
	partner := w.index[a.Peer]
	l := w.line(p.index, partner)
	if l.cut {
		return
	}
	frame, err := wire.Pack(nil, 0, session.Message(a.Message))
	if err != nil {
		p.broke(partner, fmt.Errorf("telling peer %d %s: %w", partner, a.Message, err))
		return
	}
	p.sent(partner, len(frame))
	p.counts.Messages++
	l.arrive(l.carry(wayOf(p.index, partner), len(frame)), func() {
		if !l.cut {
			w.peers[partner].received(p, frame)
		}
	})
}

// sent counts bytes written to another peer.
func (p *peer) sent(to, bytes int) {
	p.counts.Sent += int64(bytes)
	if p.world.config.Sites.apart(p.index, to) {
		p.counts.Across += int64(bytes)
	}
}

// received takes a message.
func (p *peer) received(from *peer, frame []byte) {
	if p.gone {
		return
	}
	h, payload, err := wire.NewReader(bytes.NewReader(frame), wire.MaxHandshake).Next()
	var message collective.Message
	var accepted bool
	if err == nil {
		message, accepted, err = session.MessageOf(&p.conversations.host, p.now(), from.id, h, payload)
	}
	switch {
	case err != nil:
		p.broke(from.index, fmt.Errorf("a word of peer %d: %w", from.index, err))
	case accepted:
		p.driver.report(collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: from.id}, Message: message})
	}
}

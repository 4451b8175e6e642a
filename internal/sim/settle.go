package sim

import (
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// question is what the peer asks a partner: the outcome of an exchange that it has
// served and that broke off.
type question struct {
	exchange uint64
	status   wire.Status
}

// inquiry is a talk for the sake of a question.
type inquiry struct {
	*talk
	question
}

// ask returns the next question for a partner, if there is one.
func (p *peer) ask(partner topology.PeerID) (q question, ok bool) {
	q.exchange, q.status, ok = p.ledger.Ask(string(partner))
	return q, ok
}

// settleLater lets the peer ask about what is in doubt, again and again until
// nothing is.
func (p *peer) settleLater() {
	if p.settling || len(p.ledger.Partners()) == 0 {
		return
	}
	p.settling = true
	p.world.queue.After(p.world.config.SettleAfter, func() {
		p.settling = false
		if p.gone {
			return
		}
		p.ledger.Expire(p.now())
		p.tellDoubt()
		for _, partner := range p.ledger.Partners() {
			if _, member := p.world.overlay.View().Lookup(topology.PeerID(partner)); member {
				p.inquire(p.world.index[topology.PeerID(partner)])
			}
		}
		p.settleLater()
	})
}

// inquire asks one partner, unless it is being asked.
func (p *peer) inquire(partner int) {
	for _, t := range p.talks {
		if _, asking := t.part.(*inquiry); asking && t.partner == partner {
			return
		}
	}
	q, ok := p.ask(p.world.peers[partner].id)
	if !ok {
		return
	}
	t, ok := p.open(partner)
	if !ok {
		return
	}
	t.part = &inquiry{t, q}
	if err := t.say(q.exchange, q.status); err != nil {
		t.breakOff(err)
	}
}

func (q *inquiry) hear(h wire.Header, payload []byte) error {
	if h.Type != wire.TypeSettled || h.Exchange != q.exchange {
		return fmt.Errorf("waiting for %v of exchange %d: got %v of exchange %d: %w",
			wire.TypeSettled, q.exchange, h.Type, h.Exchange, wire.ErrType)
	}
	if err := q.peer.settle(q.peer.world.peers[q.partner].id, q.question, payload); err != nil {
		return err
	}
	q.finish()
	return nil
}

func (q *inquiry) closed() error { return io.ErrUnexpectedEOF }

func (q *inquiry) broken(err error) { q.peer.broke(q.partner, err) }

// settle takes a partner's answer to a question.
func (p *peer) settle(partner topology.PeerID, q question, payload []byte) error {
	var answer wire.Settled
	if err := answer.Decode(payload); err != nil {
		return err
	}
	applied, dropped, _ := p.ledger.Settle(string(partner), q.exchange, q.status, answer)
	p.counts.Applied += applied
	p.counts.Dropped += dropped
	p.tellDoubt()
	return nil
}

// reply answers a partner's question.
func (p *peer) reply(t *talk, h wire.Header, payload []byte) error {
	var status wire.Status
	if err := status.Decode(payload); err != nil {
		return err
	}
	return t.say(h.Exchange, p.ledger.Answer(string(p.world.peers[t.partner].id), h.Exchange, status))
}

// tellDoubt tells the machine how many exchanges are in doubt.
func (p *peer) tellDoubt() {
	n := p.ledger.Unresolved(func(string) bool { return true })
	p.tell(averaging.Event{Kind: averaging.Doubt, Unresolved: n})
}

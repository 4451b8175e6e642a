package peer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// An exchange that breaks off can leave slices in doubt at the passive side, which
// asks the active one about them: before it answers the next proposal, and of its
// own accord until then.

// Bounds of asking.
const (
	// maxQuestions bounds the questions on one stream.
	maxQuestions = 8
	// The first question of its own accord comes repairFirst after the exchange
	// broke off, each further one after twice the time, up to repairMost.
	repairFirst = 500 * time.Millisecond
	repairMost  = 30 * time.Second
	// maxUnanswered is after how many questions a partner is silent.
	maxUnanswered = 4
	// doubtMost is for how long the doubts of a partner keep this peer from serving others,
	// doubtRest how many times longer it takes until they may again: or a few that answer
	// just in time could stop everybody's exchanges for good.
	doubtMost = 10 * time.Second
	doubtRest = 8
	// maxHolders bounds the partners of whom that is remembered.
	maxHolders = 256
)

// settleOn asks the partner on a stream about everything that is in doubt with it.
func (p *Peer) settleOn(t *talk) error {
	partner := string(t.stream.Remote())
	for range maxQuestions {
		exchange, question, ok := p.sides.ledger.Ask(partner)
		if !ok {
			return nil
		}
		var answer wire.Settled
		if err := say(t, exchange, question); err != nil {
			return err
		}
		header, err := t.hear(&answer)
		if err != nil {
			return err
		}
		if header.Exchange != exchange {
			return fmt.Errorf("answer about exchange %d where %d was asked for: %w", header.Exchange, exchange, wire.ErrMessage)
		}
		applied, dropped, lost := p.resolve(partner, exchange, question, answer)
		p.counters.settled.Add(uint64(applied + dropped))
		p.tellDoubts()
		p.log.Info("settled slices that were in doubt", zap.String("peer", partner), zap.Uint64("exchange", exchange),
			zap.Int("applied", applied), zap.Int("dropped", dropped), zap.Int("lost", lost))
	}
	return nil
}

// answerStatus answers a question about an exchange that this peer initiated.
func (p *Peer) answerStatus(t *talk, partner seam.PeerID, header wire.Header, payload []byte) error {
	var question wire.Status
	if err := question.Decode(payload); err != nil {
		return err
	}
	return say(t, header.Exchange, p.sides.ledger.Answer(string(partner), header.Exchange, question))
}

// serveStatus answers a stream of questions, of which the first has come.
func (p *Peer) serveStatus(t *talk, header wire.Header, payload []byte) error {
	for range maxQuestions {
		if err := p.answerStatus(t, t.stream.Remote(), header, payload); err != nil {
			return err
		}
		var err error
		if header, payload, err = t.next(); err != nil {
			t.stream.Close() // the partner has asked all it wanted
			return nil
		}
		if header.Type != wire.TypeStatus {
			return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeStatus, header.Type, wire.ErrType)
		}
	}
	t.stream.Reset()
	return nil
}

// repairs knows when to ask whom. The zero value is ready.
type repairs struct {
	mu      sync.Mutex
	waiting map[seam.PeerID]repair
	looked  time.Time                              // when they were last looked at
	holders *simplelru.LRU[seam.PeerID, time.Time] // when what each has held up will be forgotten
}

// repair is the state of asking one partner.
type repair struct {
	at    time.Time     // when to ask next
	after time.Duration // the wait before that
	asked int           // questions without an answer
	busy  bool
}

// silent tells whether a partner has left so many questions unanswered, or has held others
// up for so long, that it no longer counts.
func (r *repairs) silent(partner seam.PeerID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[partner].asked >= maxUnanswered || r.spent(partner, now)
}

// spent tells whether a partner has held others up for as long as it may. The lock is held.
func (r *repairs) spent(partner seam.PeerID, now time.Time) bool {
	if r.holders == nil {
		return false
	}
	forgotten, _ := r.holders.Peek(partner)
	return forgotten.Sub(now) >= doubtRest*doubtMost
}

// hold counts the time for which a partner has held others up. The lock is held.
func (r *repairs) hold(partner seam.PeerID, since, now time.Time) {
	if r.spent(partner, now) {
		return
	}
	if r.holders == nil {
		r.holders, _ = simplelru.NewLRU[seam.PeerID, time.Time](maxHolders, nil) // fails of sizes that are not positive
	}
	forgotten, _ := r.holders.Get(partner)
	if forgotten.Before(since) {
		forgotten = since
	}
	if forgotten = forgotten.Add((1 + doubtRest) * now.Sub(since)); forgotten.Sub(now) > doubtRest*doubtMost {
		forgotten = now.Add(doubtRest * doubtMost)
	}
	r.holders.Add(partner, forgotten)
}

// due returns the partners, of those given, that should be asked now, and notes
// that they are being asked.
func (r *repairs) due(partners []string, now time.Time) (ask []seam.PeerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := make(map[seam.PeerID]repair, len(partners))
	for _, partner := range partners {
		id := seam.PeerID(partner)
		turn, known := r.waiting[id]
		if !known {
			turn = repair{at: now.Add(repairFirst), after: repairFirst}
		} else {
			r.hold(id, r.looked, now)
		}
		if !turn.busy && !turn.at.After(now) {
			turn.busy = true
			ask = append(ask, id)
		}
		keep[id] = turn
	}
	r.waiting, r.looked = keep, now
	return ask
}

// asked notes the end of asking.
func (r *repairs) asked(partner seam.PeerID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn, ok := r.waiting[partner]; ok {
		turn.asked++
		turn.busy, turn.after = false, min(2*turn.after, repairMost)
		turn.at = now.Add(turn.after)
		r.waiting[partner] = turn
	}
}

// repair asks those partners whose turn it is, and gives up what is too old.
func (l *loop) repair(now time.Time) {
	p := l.peer
	p.sides.ledger.Expire(p.now())
	for _, partner := range p.repairs.due(p.sides.ledger.Partners(), now) {
		p.transfers.spawn(func() {
			if err := p.inquire(p.exchanges, partner); err != nil {
				p.log.Debug("a partner did not answer about a broken exchange; it is asked again later",
					zap.String("peer", string(partner)), zap.Error(err))
			}
			p.repairs.asked(partner, time.Now())
		})
	}
	l.doubts()
}

// doubts tells the machine how many exchanges are in doubt, if that has changed.
func (l *loop) doubts() {
	if n := l.peer.unresolved(); n != l.unresolved {
		l.unresolved = n
		l.events = append(l.events, notice{event: averaging.Event{Kind: averaging.Doubt, Unresolved: n}})
	}
}

// inquire asks a partner about everything that is in doubt with it.
func (p *Peer) inquire(ctx context.Context, partner seam.PeerID) error {
	open, cancel := context.WithTimeout(ctx, p.config.Exchange.Stall)
	stream, err := p.transport.Open(open, partner, seam.ProtocolExchange, p.config.Run)
	cancel()
	if err != nil {
		return err
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	if err := p.settleOn(t); err != nil {
		stream.Reset()
		return err
	}
	stream.Close()
	return nil
}

// unresolved is the number of exchanges in doubt with members that are here: those
// with others cannot disturb an exchange.
func (p *Peer) unresolved() int {
	return p.sides.ledger.Unresolved(func(partner string) bool {
		return p.flock.here(seam.PeerID(partner)) && !p.repairs.silent(seam.PeerID(partner), time.Now())
	})
}

// tellDoubts has the loop look at the doubts soon.
func (p *Peer) tellDoubts() { p.notify(notice{doubts: true}) }

// now is the time since the peer was started.
func (p *Peer) now() time.Duration { return time.Since(p.started) }

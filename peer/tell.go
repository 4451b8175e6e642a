package peer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// Words of machines travel one way over a stream that stays open, one for each
// partner and direction. They may be lost, with a stream or with a partner that does
// not take them: machines say again what matters.
const (
	// maxUntold bounds the words that wait for a partner to take those before.
	maxUntold = 64
	// wordsIdle is after what time without a word a stream for them is closed.
	wordsIdle = 30 * time.Second
)

// telling is the streams of words of a peer. The zero value is ready.
type telling struct {
	mu       sync.Mutex
	ended    bool
	broken   bool // no word is told any more
	speakers map[seam.PeerID]*speaker
	hearing  map[seam.PeerID]seam.Stream
	speaking tasks
}

// speaker is one partner that words are told to.
type speaker struct {
	partner seam.PeerID
	queue   chan averaging.Word // closed when the peer closes
	stream  seam.Stream         // nil while there is none; telling's lock guards it
}

// tell hands a word over to be told. It never waits: one for which there is no room
// is lost.
func (p *Peer) tell(action averaging.Action) {
	w, partner := &p.telling, seam.PeerID(action.Peer)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	s := w.speakers[partner]
	if s == nil {
		s = &speaker{partner: partner, queue: make(chan averaging.Word, maxUntold)}
		if w.speakers == nil {
			w.speakers = make(map[seam.PeerID]*speaker)
		}
		w.speakers[partner] = s
		w.speaking.spawn(func() { p.speak(s) })
	}
	select {
	case s.queue <- action.Word:
	default:
		p.log.Debug("a word is lost: its partner does not take those before", zap.String("peer", string(partner)))
	}
}

// speak tells a partner its words until the peer closes, or none has come for a while.
func (p *Peer) speak(s *speaker) {
	var t *talk
	defer func() { p.fallSilent(s, t) }()
	idle := time.NewTimer(wordsIdle)
	defer idle.Stop()
	for {
		select {
		case word, more := <-s.queue:
			if !more {
				return
			}
			t = p.utter(s, t, word)
			idle.Reset(wordsIdle)
		case <-idle.C:
			if p.telling.retire(s) {
				return
			}
			idle.Reset(wordsIdle)
		}
	}
}

// utter tells one word, over a new stream if there is none or it has broken. It
// returns the stream for the next, nil if the partner cannot be reached: what waited
// for it is lost then, or it would be told things of long ago once it can.
func (p *Peer) utter(s *speaker, t *talk, word averaging.Word) *talk {
	message := replica.TellOf(word)
	if t != nil {
		if say(t, 0, message) == nil {
			return t
		}
		p.hushed(s, t)
	}
	t, err := p.address(s)
	if err == nil {
		if err = say(t, 0, message); err == nil {
			return t
		}
		p.hushed(s, t)
	}
	for len(s.queue) > 0 {
		<-s.queue
	}
	p.log.Debug("a partner could not be told a word", zap.String("peer", string(s.partner)), zap.Error(err))
	return nil
}

// address opens a stream for words.
func (p *Peer) address(s *speaker) (*talk, error) {
	ctx, cancel := context.WithTimeout(p.exchanges, p.patience(s.partner))
	defer cancel()
	stream, err := p.transport.Open(ctx, s.partner, seam.ProtocolExchange, p.config.Run)
	if err != nil {
		return nil, fmt.Errorf("opening a stream for words: %w", err)
	}
	if !p.telling.speak(s, stream) {
		stream.Reset()
		return nil, fmt.Errorf("opening a stream for words: %w", ErrClosed)
	}
	t := p.talk(stream)
	t.stall = p.patience(s.partner)
	return t, nil
}

// speak notes the stream to a partner, nil when it has ended. It reports false if it is
// too late to use one.
func (w *telling) speak(s *speaker, stream seam.Stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken && stream != nil {
		return false
	}
	s.stream = stream
	return true
}

// hushed ends a stream that has broken.
func (p *Peer) hushed(s *speaker, t *talk) {
	p.telling.speak(s, nil)
	t.stream.Reset()
	p.end(t)
}

// fallSilent ends a stream in good order, if there is one.
func (p *Peer) fallSilent(s *speaker, t *talk) {
	if t != nil {
		p.telling.speak(s, nil)
		t.stream.Close()
		p.end(t)
	}
}

// retire forgets a speaker that has had nothing to say for a while. It reports false
// if a word has come meanwhile, or none will.
func (w *telling) retire(s *speaker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || len(s.queue) > 0 {
		return false
	}
	delete(w.speakers, s.partner)
	return true
}

// breakOff ends the telling of words at once: those that wait are lost.
func (w *telling) breakOff() {
	w.mu.Lock()
	w.broken = true
	var open []seam.Stream
	for _, s := range w.speakers {
		if s.stream != nil {
			open = append(open, s.stream)
		}
	}
	w.mu.Unlock()
	for _, stream := range open {
		stream.Reset()
	}
}

// end tells what still waits, as far as partners take it within a time, ends the streams
// in both directions and lets no other begin. It is idempotent.
func (w *telling) end(within time.Duration) {
	late := time.AfterFunc(within, w.breakOff)
	defer late.Stop()
	var heard []seam.Stream
	w.mu.Lock()
	if !w.ended {
		w.ended = true
		for _, s := range w.speakers {
			close(s.queue)
		}
		heard = slices.Collect(maps.Values(w.hearing))
	}
	w.mu.Unlock()
	for _, stream := range heard { // not under the lock: to reset is to wait for a transport
		stream.Reset()
	}
	w.speaking.end()
}

// listen takes up the stream on which a partner tells its words, in the place of an
// older one. It reports false if it is too late.
func (w *telling) listen(stream seam.Stream) bool {
	old, late := w.replace(stream)
	if old != nil {
		old.Reset()
	}
	return !late
}

// replace puts a stream in the place of an older one, which it returns.
func (w *telling) replace(stream seam.Stream) (old seam.Stream, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, true
	}
	if w.hearing == nil {
		w.hearing = make(map[seam.PeerID]seam.Stream)
	}
	old = w.hearing[stream.Remote()]
	w.hearing[stream.Remote()] = stream
	return old, false
}

// unlisten forgets a stream that has ended.
func (w *telling) unlisten(stream seam.Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hearing[stream.Remote()] == stream {
		delete(w.hearing, stream.Remote())
	}
}

// serveWords hears what a partner's machine tells, of which the first word has come,
// until the partner closes the stream.
func (p *Peer) serveWords(t *talk, header wire.Header, payload []byte) error {
	if !p.telling.listen(t.stream) {
		t.stream.Reset()
		return nil
	}
	defer p.telling.unlisten(t.stream)
	partner, ration := t.stream.Remote(), newRation(time.Now())
	for {
		if header.Type != wire.TypeTell {
			return fmt.Errorf("waiting for %v: got %v: %w", wire.TypeTell, header.Type, wire.ErrType)
		}
		var message wire.Tell
		if err := message.Decode(payload); err != nil {
			return err
		}
		if !p.pause(ration.take(time.Now())) {
			t.stream.Reset()
			return nil
		}
		if p.quarantine.left(partner, time.Now()) == 0 {
			p.notify(notice{event: averaging.Event{
				Kind: averaging.Told, Peer: topology.PeerID(partner),
				Word: replica.WordOf(message),
			}})
		}
		var err error
		if header, payload, err = t.listen(); err != nil {
			t.stream.Reset() // it has ended, in good order or not: words may be lost
			return nil
		}
	}
}

// listen reads a frame that may be long in coming, though not longer than the other end
// keeps a stream that it does not use.
func (t *talk) listen() (wire.Header, []byte, error) {
	if err := t.stream.SetReadDeadline(time.Now().Add(wordsIdle + t.stall)); err != nil {
		return wire.Header{}, nil, err
	}
	return t.reader.Next()
}

package talks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
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

// words is the streams of words of a peer.
type words struct {
	*base
	mu       sync.Mutex
	ended    bool
	broken   bool // no word is told any more
	speakers map[seam.PeerID]*speaker
	hearing  map[seam.PeerID]seam.Stream
	speaking tasks.Group
	rations
}

// speaker is one partner that words are told to.
type speaker struct {
	partner seam.PeerID
	queue   chan collective.Word // closed when the peer closes
	stream  seam.Stream          // nil while there is none; the lock of words guards it
}

// Tell hands a word over to be told. It never waits: one for which there is no room
// is lost.
func (w *words) Tell(action collective.Action) {
	partner := action.Peer
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	s := w.speakers[partner]
	if s == nil {
		s = &speaker{partner: partner, queue: make(chan collective.Word, maxUntold)}
		if w.speakers == nil {
			w.speakers = make(map[seam.PeerID]*speaker)
		}
		w.speakers[partner] = s
		w.speaking.Spawn(func() { w.speak(s) })
	}
	select {
	case s.queue <- action.Word:
	default:
		w.Log.Debug("a word is lost: its partner does not take those before", zap.String("peer", string(partner)))
	}
}

// speak tells a partner its words until the peer closes, or none has come for a while.
func (w *words) speak(s *speaker) {
	var t *talk
	defer func() { w.closeWords(s, t) }()
	idle := time.NewTimer(wordsIdle)
	defer idle.Stop()
	for {
		select {
		case word, more := <-s.queue:
			if !more {
				return
			}
			t = w.say(s, t, word)
			idle.Reset(wordsIdle)
		case <-idle.C:
			if w.retire(s) {
				return
			}
			idle.Reset(wordsIdle)
		}
	}
}

// say tells one word, over a new stream if there is none or it has broken. It
// returns the stream for the next, nil if the partner cannot be reached: what waited
// for it is lost then, or it would be told things of long ago once it can.
func (w *words) say(s *speaker, t *talk, word collective.Word) *talk {
	message := wire.Tell(word)
	if t != nil {
		if framed.Say(&t.Stream, 0, message) == nil {
			return t
		}
		w.dropWords(s, t)
	}
	t, err := w.address(s)
	if err == nil {
		if err = framed.Say(&t.Stream, 0, message); err == nil {
			return t
		}
		w.dropWords(s, t)
	}
	for len(s.queue) > 0 {
		<-s.queue
	}
	w.Log.Debug("a partner could not be told a word", zap.String("peer", string(s.partner)), zap.Error(err))
	return nil
}

// address opens a stream for words.
func (w *words) address(s *speaker) (*talk, error) {
	ctx, cancel := context.WithTimeout(w.Exchanges, w.Host.Links.Patience(s.partner))
	defer cancel()
	stream, err := w.Transport.Open(ctx, s.partner, seam.ProtocolExchange, w.Host.Run)
	if err != nil {
		return nil, fmt.Errorf("opening a stream for words: %w", err)
	}
	if !w.uses(s, stream) {
		stream.Reset()
		return nil, fmt.Errorf("opening a stream for words: %w", seam.ErrClosed)
	}
	t := w.talk(stream)
	t.Stall = w.Host.Links.Patience(s.partner)
	return t, nil
}

// uses notes the stream to a partner, nil when it has ended. It reports false if it is
// too late to use one.
func (w *words) uses(s *speaker, stream seam.Stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken && stream != nil {
		return false
	}
	s.stream = stream
	return true
}

// dropWords ends a stream that has broken.
func (w *words) dropWords(s *speaker, t *talk) {
	w.uses(s, nil)
	t.Reset()
	w.done(t)
}

// closeWords ends a stream in good order, if there is one.
func (w *words) closeWords(s *speaker, t *talk) {
	if t != nil {
		w.uses(s, nil)
		t.Close()
		w.done(t)
	}
}

// retire forgets a speaker that has had nothing to say for a while. It reports false
// if a word has come meanwhile, or none will.
func (w *words) retire(s *speaker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || len(s.queue) > 0 {
		return false
	}
	delete(w.speakers, s.partner)
	return true
}

// breakOff ends the telling of words at once: those that wait are lost.
func (w *words) breakOff() {
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

// EndWords tells what still waits, as far as partners take it within a time, ends the streams
// in both directions and lets no other begin. It is idempotent.
func (w *words) EndWords(within time.Duration) {
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
	w.speaking.End()
}

// listen takes up the stream on which a partner tells its words, in the place of an
// older one. It reports false if it is too late.
func (w *words) listen(stream seam.Stream) bool {
	old, late := w.replace(stream)
	if old != nil {
		old.Reset()
	}
	return !late
}

// replace puts a stream in the place of an older one, which it returns.
func (w *words) replace(stream seam.Stream) (old seam.Stream, late bool) {
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
func (w *words) unlisten(stream seam.Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hearing[stream.Remote()] == stream {
		delete(w.hearing, stream.Remote())
	}
}

package dashboard

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	// maxWatchers bounds those who watch at once.
	maxWatchers = 16
	// maxWaiting bounds the messages that wait for one who watches: who falls behind
	// is let go, and its browser comes again.
	maxWaiting = 32
	// watchTimeout bounds the sending of a message.
	watchTimeout = 10 * time.Second
)

// hub hands messages to those who watch. Its owner locks it. The zero value is ready.
type hub struct {
	watchers map[chan []byte]struct{}
	closed   bool
}

// join takes up one who watches; nil if there are too many.
func (h *hub) join() chan []byte {
	if h.closed || len(h.watchers) >= maxWatchers {
		return nil
	}
	if h.watchers == nil {
		h.watchers = make(map[chan []byte]struct{})
	}
	waiting := make(chan []byte, maxWaiting)
	h.watchers[waiting] = struct{}{}
	return waiting
}

// leave lets one go who watched, if nobody has yet.
func (h *hub) leave(waiting chan []byte) {
	if _, here := h.watchers[waiting]; here {
		delete(h.watchers, waiting)
		close(waiting)
	}
}

func (h *hub) close() {
	h.closed = true
	for waiting := range h.watchers {
		h.leave(waiting)
	}
}

// tell sends a message to all who watch. Without any it costs nothing.
func (h *hub) tell(event string, value any) {
	if len(h.watchers) == 0 {
		return
	}
	text, err := message(event, value)
	if err != nil {
		return // all values are ours, and can be written
	}
	for waiting := range h.watchers {
		select {
		case waiting <- text:
		default:
			h.leave(waiting)
		}
	}
}

// message is a server-sent event.
func message(event string, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, text), nil
}

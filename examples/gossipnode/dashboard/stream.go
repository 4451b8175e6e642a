package dashboard

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	// maxWatchers bounds the viewers at a time.
	maxWatchers = 16
	// maxWaiting bounds the messages that wait for a viewer: a viewer that is too slow is disconnected, and its
	// browser connects again.
	maxWaiting = 32
	// watchTimeout bounds the time to send a message.
	watchTimeout = 10 * time.Second
)

// hub sends messages to all viewers. Its owner locks it. The zero value is ready.
type hub struct {
	watchers map[chan []byte]struct{}
	closed   bool
}

// join adds a viewer; nil if there are too many.
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

// leave removes a viewer, unless it has been removed.
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

// tell sends a message to all viewers. Without viewers it costs nothing.
func (h *hub) tell(event string, value any) {
	if len(h.watchers) == 0 {
		return
	}
	text, err := message(event, value)
	if err != nil {
		return // cannot happen: all types can be encoded
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

package session_test

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// describe tells of a frame what one wants to know of it.
func describe(lane int, frame []byte) string {
	h, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
	if err != nil {
		return fmt.Sprintf("%d bytes that are no frame", len(frame))
	}
	line := h.Type.String()
	switch h.Type {
	case wire.TypeCode, wire.TypeDiff, wire.TypePart, wire.TypeRanges:
		line += fmt.Sprintf(" %d", h.Slice)
	case wire.TypeRefuse:
		var m wire.Refuse
		if m.Decode(payload) == nil {
			line += fmt.Sprintf(" for %s: %s", m.Reason, m.Detail)
		}
	case wire.TypeAccept:
		var m wire.Accept
		if m.Decode(payload) == nil {
			line += fmt.Sprintf(" codecs %v, window %d, overlap %d, lanes %d", m.Codecs, m.Window, m.Overlap, m.Lanes)
		}
	case wire.TypePropose:
		var m wire.Propose
		if m.Decode(payload) == nil {
			line += fmt.Sprintf(" codecs %v, overlap %d, lanes %d", m.Codecs, m.Overlap, m.Lanes)
		}
	case wire.TypeStatus:
		var m wire.Status
		if m.Decode(payload) == nil {
			line += fmt.Sprintf(" of slices %v of exchange %d", m.Slices, h.Exchange)
		}
	case wire.TypeSettled:
		var m wire.Settled
		if m.Decode(payload) == nil {
			line += fmt.Sprintf(" known %v, applied %b", m.Known, m.Applied)
		}
	}
	if h.Type == wire.TypeCode || h.Type == wire.TypeAck {
		line += fmt.Sprintf(", acknowledges %d", h.Ack)
	}
	if h.Type == wire.TypeAck && h.Slice > 0 {
		line += fmt.Sprintf(", leaves %d slices", h.Slice)
	}
	if lane > 0 {
		line += fmt.Sprintf(" (lane %d)", lane)
	}
	return line
}

// sending is a further lane of A's, driven by one goroutine.
type sending struct {
	lane *session.SendingLane
	err  error
}

func (s *sending) Next(_ time.Duration, buf *[]byte) ([]byte, session.Do) {
	if s.err != nil {
		return nil, session.Over
	}
	frame, do, err := s.lane.Next(0, buf)
	if err != nil {
		s.err = err
		return nil, session.Over
	}
	if do == session.Over && !s.lane.Over() {
		return nil, session.Wait
	}
	return frame, do
}

func (s *sending) Receive(_ time.Duration, h wire.Header, payload []byte) {
	if err := s.lane.Receive(h, payload); err != nil {
		s.err = err
	}
}

func (s *sending) Close() {
	if err := s.lane.Close(); err != nil {
		s.err = err
	}
}

func (s *sending) Fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.err = err
}

// held is a conversation of which the first stream is over and others are not.
type held struct {
	session.Conversation
	pair *pair
	side int
}

func (h *held) Next(time.Duration, *[]byte) ([]byte, session.Do) {
	if h.pair.lanesLeft(h.pair.ways[0], h.side) {
		return nil, session.Wait
	}
	return nil, session.Over
}
func (h *held) Receive(time.Duration, wire.Header, []byte) {}
func (h *held) Close()                                     {}
func (h *held) Fail(err error)                             {}

package orderlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Subject is a kind of question to a member, with a protocol of its own and answers in frames of one type.
type Subject struct {
	what     string
	protocol transport.Protocol
	frame    wire.Type
	size     int // of a payload, at most
	most     int // frames each way
}

// Said is the subject of the operator's signed messages: both sides send those that they know.
func Said() Subject {
	return Subject{"what the operator has said", transport.ProtocolControl, wire.TypeControl, wire.MaxControl, Most}
}

// Members is the subject of the run's members.
func Members() Subject {
	return Subject{"who takes part", transport.ProtocolMembers, wire.TypeMember, wire.MaxMember, 4096}
}

// Ask sends messages to a member and returns its answer: everything that it then holds. A
// refusal is a *wire.Refusal.
func (s Subject) Ask(ctx context.Context, over transport.Dialer, run string, member transport.PeerID, messages [][]byte, stall time.Duration) (answers [][]byte, err error) {
	stream, err := over.Open(ctx, member, s.protocol, run)
	if err == nil {
		err = new(framed.Stream).Converse(ctx, stream, stall, func(t *framed.Stream) (err error) {
			if err = s.say(t, messages); err == nil {
				err = t.CloseWrite()
			}
			if err == nil {
				answers, err = s.Receive(t)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s %s: %w", member, s.what, err)
	}
	return answers, nil
}

// Answer sends messages as the answer to a question.
func (s Subject) Answer(t *framed.Stream, messages [][]byte) {
	if s.say(t, messages[:min(len(messages), s.most)]) != nil {
		t.Reset()
		return
	}
	t.Finish()
}

func (s Subject) say(t *framed.Stream, messages [][]byte) error {
	for _, message := range messages {
		t.Frame = append(wire.Reserve(t.Frame), message...)
		if err := t.Seal(wire.Header{Type: s.frame}); err != nil {
			return err
		}
	}
	return nil
}

// Receive reads messages until the other end closes its side.
func (s Subject) Receive(t *framed.Stream) (messages [][]byte, err error) {
	t.Limit(s.size)
	for {
		header, payload, err := t.Next()
		switch {
		case err == io.EOF:
			return messages, nil
		case err != nil:
			return nil, fmt.Errorf("waiting for %v: %w", s.frame, err)
		case header.Type == wire.TypeRefuse:
			return nil, wire.Refused(payload)
		case header.Type != s.frame:
			return nil, fmt.Errorf("waiting for %v: got %v: %w", s.frame, header.Type, wire.ErrType)
		case len(messages) == s.most:
			return nil, fmt.Errorf("more than %d messages: %w", s.most, wire.ErrMessage)
		}
		messages = append(messages, bytes.Clone(payload))
	}
}

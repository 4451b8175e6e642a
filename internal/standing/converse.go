package standing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Converse tells a member messages and returns what it answers, which is all that it then
// holds. A refusal is a *wire.Refusal.
func Converse(ctx context.Context, over seam.Dialer, run string, member seam.PeerID, messages [][]byte, stall time.Duration) (answers [][]byte, err error) {
	stream, err := over.Open(ctx, member, seam.ProtocolControl, run)
	if err == nil {
		err = new(framed.Stream).Converse(ctx, stream, stall, func(t *framed.Stream) (err error) {
			if err = Say(t, messages); err == nil {
				err = t.CloseWrite()
			}
			if err == nil {
				answers, err = Hear(t)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s what the operator has said: %w", member, err)
	}
	return answers, nil
}

// Say sends control messages.
func Say(t *framed.Stream, messages [][]byte) error {
	for _, message := range messages {
		t.Frame = append(wire.Reserve(t.Frame), message...)
		if err := t.Seal(wire.Header{Type: wire.TypeControl}); err != nil {
			return err
		}
	}
	return nil
}

// Hear reads control messages, at most Most, until the other end has no more to say.
func Hear(t *framed.Stream) (messages [][]byte, err error) {
	t.Limit(wire.MaxControl)
	for {
		header, payload, err := t.Next()
		switch {
		case err == io.EOF:
			return messages, nil
		case err != nil:
			return nil, fmt.Errorf("waiting for %v: %w", wire.TypeControl, err)
		case header.Type == wire.TypeRefuse:
			return nil, wire.Refused(payload)
		case header.Type != wire.TypeControl:
			return nil, fmt.Errorf("waiting for %v: got %v: %w", wire.TypeControl, header.Type, wire.ErrType)
		case len(messages) == Most:
			return nil, fmt.Errorf("more than %d messages: %w", Most, wire.ErrMessage)
		}
		messages = append(messages, bytes.Clone(payload))
	}
}

package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// What two peers know of the operator, they tell each other on a stream: the opener
// all that it holds, the other all that it then holds.

// ask tells a member what the operator has said, and hears what it knows.
func (c *control) ask(ctx context.Context, member seam.PeerID) error {
	if c.config.Operator == "" {
		return nil
	}
	answers, err := converse(ctx, c.peer.transport, c.peer.config.Run, member, c.all(), c.peer.config.Exchange.Stall)
	if err != nil {
		return err
	}
	for _, message := range answers {
		if verdict, _ := c.judge(message); verdict == seam.Forward {
			c.publish(message)
		}
	}
	return nil
}

func (c *control) all() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing.all()
}

// serveControl answers a peer or the operator.
func (p *Peer) serveControl(stream seam.Stream) {
	c := p.control
	t := p.talk(stream)
	defer p.end(t)
	messages, err := hearMessages(t)
	if err != nil {
		p.malformed(t, stream, err)
		return
	}
	for _, message := range messages {
		verdict, fault := c.judge(message)
		if verdict == seam.Forward {
			c.publish(message)
		}
		if fault != nil {
			reason, detail := wire.ReasonProtocol, fault.Error()
			if errors.Is(fault, errControlForeign) {
				reason = wire.ReasonOperator
				if c.config.Operator == "" {
					detail = "this peer obeys no operator"
				}
			}
			c.log.Warn("refused a control message", zap.String("peer", string(stream.Remote())), zap.Error(fault))
			t.refuse(0, reason, detail)
			return
		}
	}
	if err := sayMessages(t, c.all()); err != nil {
		stream.Reset()
		return
	}
	t.finish()
}

// converse tells a member messages and returns what it answers.
func converse(ctx context.Context, transport seam.Transport, run string, member seam.PeerID, messages [][]byte, stall time.Duration) ([][]byte, error) {
	stream, err := transport.Open(ctx, member, seam.ProtocolControl, run)
	if err != nil {
		return nil, asRefusal(member, fmt.Errorf("asking %s what the operator has said: %w", member, err))
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := &talk{stream: stream, stall: stall}
	err = sayMessages(t, messages)
	if err == nil {
		err = stream.CloseWrite()
	}
	var answers [][]byte
	if err == nil {
		answers, err = hearMessages(t)
	}
	if err != nil {
		stream.Reset()
		return nil, asRefusal(member, fmt.Errorf("asking %s what the operator has said: %w", member, err))
	}
	stream.Close()
	return answers, nil
}

func sayMessages(t *talk, messages [][]byte) error {
	for _, message := range messages {
		t.frame = append(wire.Reserve(t.frame), message...)
		if err := wire.Seal(t.frame, wire.Header{Type: wire.TypeControl}); err != nil {
			return err
		}
		if err := t.write(t.frame); err != nil {
			return fmt.Errorf("sending %v: %w", wire.TypeControl, err)
		}
	}
	return nil
}

// hearMessages reads control messages until the other end has no more to say.
func hearMessages(t *talk) (messages [][]byte, err error) {
	t.reader = wire.NewReader(t, wire.MaxControl)
	for {
		header, payload, err := t.next()
		switch {
		case err == io.EOF:
			return messages, nil
		case err != nil:
			return nil, fmt.Errorf("waiting for %v: %w", wire.TypeControl, err)
		case header.Type == wire.TypeRefuse:
			return nil, refused(payload)
		case header.Type != wire.TypeControl:
			return nil, fmt.Errorf("waiting for %v: got %v: %w", wire.TypeControl, header.Type, wire.ErrType)
		case len(messages) == maxStanding:
			return nil, fmt.Errorf("more than %d messages: %w", maxStanding, wire.ErrMessage)
		}
		messages = append(messages, append([]byte(nil), payload...))
	}
}

// seal signs a message as its author.
func seal(identity seam.Identity, m wire.Control) ([]byte, error) {
	signature, err := identity.Sign(m.Signed())
	if err != nil {
		return nil, fmt.Errorf("signing a control message: %w", err)
	}
	if copy(m.Signature[:], signature) != len(signature) || len(signature) != wire.ControlSignature {
		return nil, fmt.Errorf("signing a control message: a signature of %d bytes, not the %d of Ed25519", len(signature), wire.ControlSignature)
	}
	return m.Append(nil), nil
}

package conversations

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/mail"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxUnsent bounds the messages that wait for a partner to take earlier ones.
const maxUnsent = 64

// A partner's messages go to the machine by the same queue as the trainer's steps and the
// events of exchanges, so their rate is limited. A machine in lock-step sends a partner a
// few messages in a round, which takes a millisecond or more.
var ration = mail.Rate{PerSecond: 2000, AtOnce: 500, AtFirst: 16}

// messages carries the one-way messages between machines. They may be lost, with a stream or
// with a partner that does not take them: machines retransmit what matters.
type messages struct {
	*outcomes
	mail *mail.Mailbox
}

func newMessages(o *outcomes) *messages {
	return &messages{o, mail.New(mail.Config{
		Requests: o.Requests, Protocol: transport.ProtocolExchange,
		Bounds:  mail.Bounds{Messages: maxUnsent, Bytes: maxUnsent * wire.MaxHandshake},
		Rate:    ration,
		Timeout: o.Host.Links.Timeout,
		Lost: func(partner transport.PeerID, err error) {
			o.Log.Debug("a partner could not be told a word", zap.String("peer", string(partner)), zap.Error(err))
		},
	})}
}

// Tell queues a message. It never waits: a message for which there is no room is lost.
func (w *messages) Tell(action collective.Action) {
	if err := mail.Send(w.mail, action.Peer, "", session.Message(action.Message)); err != nil {
		w.Log.Debug("a word is lost", zap.String("peer", string(action.Peer)), zap.Error(err))
	}
}

// EndMessages sends what still waits, as far as partners take it within a time, ends the streams
// in both directions and lets no other begin. It is idempotent.
func (w *messages) EndMessages(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	w.mail.Close(ctx)
}

// receive takes the messages of a partner's machine, of which the first has come, until the
// partner closes the stream.
func (w *messages) receive(t *conversation) {
	partner := t.Remote()
	t.Unread()
	err := w.mail.Receive(&t.Stream, func(h wire.Header, payload []byte) error {
		message, accepted, err := session.MessageOf(&w.Host, w.now(), partner, h, payload)
		if accepted {
			w.Loop.Event(collective.Event{Event: averaging.Event{Kind: collective.Received, Peer: partner}, Message: message})
		}
		return err
	})
	if reason, theirs := replica.Blame(err); theirs {
		w.Malformed(partner, reason, err)
		t.Refuse(0, reason, err.Error())
		return
	}
	t.Reset() // it has ended, in good order or not: messages may be lost
}

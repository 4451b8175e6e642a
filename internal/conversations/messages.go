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

// maxUntold bounds the words that wait for a partner to take those before.
const maxUnsent = 64

// What a partner tells goes before the machine, on the same way as the trainer's steps and
// the course of exchanges. So one that tells much is heard more slowly. A machine in
// lock-step tells a partner a few words in a round, which takes a millisecond or more.
var ration = mail.Rate{PerSecond: 2000, AtOnce: 500, AtFirst: 16}

// messages are what machines tell each other, one way. They may be lost, with a stream or with
// a partner that does not take them: machines say again what matters.
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

// Tell hands a word over to be told. It never waits: one for which there is no room
// is lost.
func (w *messages) Tell(action collective.Action) {
	if err := mail.Send(w.mail, action.Peer, "", session.Message(action.Message)); err != nil {
		w.Log.Debug("a word is lost", zap.String("peer", string(action.Peer)), zap.Error(err))
	}
}

// EndMessages tells what still waits, as far as partners take it within a time, ends the streams
// in both directions and lets no other begin. It is idempotent.
func (w *messages) EndMessages(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	w.mail.Close(ctx)
}

// receive hears what a partner's machine tells, of which the first word has come, until the
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
	t.Reset() // it has ended, in good order or not: words may be lost
}

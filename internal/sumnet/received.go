package sumnet

import (
	"io"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Serve receives a member's messages, until it ends its stream.
func (t *Net) Serve(stream transport.Stream) {
	from := stream.Remote()
	if !t.flock.Here(from) {
		stream.Reset()
		return
	}
	var f framed.Stream
	f.Begin(stream, t.Stall)
	f.Bulk()
	err := t.mail.Receive(&f, func(h wire.Header, payload []byte) error { return t.receive(from, h.Type, payload) })
	t.Counters.Moved(0, 0, f.Received)
	if err == io.EOF {
		stream.Close()
		return
	}
	stream.Reset()
	if reason, theirs := wire.ReasonFor(err); theirs {
		t.Malformed(from, reason, err)
	}
}

// receive passes a message to the machine.
func (t *Net) receive(from transport.PeerID, kind wire.Type, payload []byte) error {
	var message wire.Sum
	var share wire.Share
	deliver := func() { t.machine.Receive(t.now(), from, message) }
	err := wire.ErrType
	switch kind {
	case wire.TypeSum:
		err = message.Decode(payload)
	case wire.TypeShare:
		err = share.Decode(payload)
		deliver = func() { t.machine.Share(t.now(), from, share) }
	}
	if err == nil && !t.do(deliver) {
		return io.EOF
	}
	return err
}

package session

import (
	"errors"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Do is what the driver of a conversation is to do next.
type Do uint8

const (
	// Wait for the partner: Receive takes its next frame, Close the end of its stream,
	// Fail whatever else ends the wait.
	Wait Do = iota
	// Send the frame.
	Send
	// CloseWrite ends this side's writing on the stream.
	CloseWrite
	// Enter: the partner's request is one on which the averaging machine decides. It has
	// not been answered yet.
	Enter
	// Ask the averaging machine about Event, and pass its answer to Answer.
	Ask
	// Agreed: both sides have agreed on the terms. If this side began the conversation,
	// report Event to the averaging machine. Frames of any size may follow, and Bounds has
	// changed.
	Agreed
	// Slices: from now on slices move, and further lanes may be driven. Bounds has
	// changed.
	Slices
	// Lane: the stream is a further lane of an exchange that this side serves. Give it to
	// ServedLane of that, or Decline.
	Lane
	// Tell: the stream carries messages, and the received frame is the first. The
	// conversation ends here; decode each frame with MessageOf.
	Tell
	// Over: the conversation has ended. End returns its result.
	Over
)

// Speaker produces and takes the frames of a stream. It is for one goroutine.
type Speaker interface {
	// Next says what to do next. A frame to send is valid until the next call of any
	// method; it may be in buf, which may grow.
	Next(now time.Duration, buf *[]byte) (frame []byte, do Do)
	// Receive takes the partner's next frame. The payload may be overwritten.
	Receive(now time.Duration, header wire.Header, payload []byte)
	// Close takes the end of the partner's stream.
	Close()
	// Fail ends the conversation because of an error of its stream. Next may still have
	// something to send. The first of several failures counts.
	Fail(err error)
}

// Conversation is one end of a conversation on a stream. It is for one goroutine.
type Conversation interface {
	Speaker
	// Break ends the conversation for a reason from outside its stream; that reason takes
	// precedence over failures that it has caused.
	Break(err error)
	// Bounds are those of the waits for the partner.
	Bounds() Bounds
	// End is called once, after Over, with the driver's measurements.
	End(now time.Duration, seen Seen) Result
}

// Bounds are the time limits for the partner.
type Bounds struct {
	// Frame bounds the wait for a whole frame, and First, if it is not 0, the wait for the
	// first byte of the next one.
	Frame, First time.Duration
	// End is when the conversation is given up even if it makes progress; 0 means never.
	End time.Duration
}

// Seen is what only a driver knows of the streams of a conversation.
type Seen struct {
	Sent, Received uint64 // bytes, on all lanes
	// Longest was the longest wait for a frame, Opening that for the first one after
	// Slices of a conversation that the partner began.
	Longest, Opening time.Duration
}

// Outcome is how a conversation has ended.
type Outcome uint8

const (
	// Nothing to report: questions and messages end like this.
	Nothing Outcome = iota
	// Finished: all has been applied at this side.
	Finished
	// Failed: it broke off, for Err.
	Failed
	// Refused: the partner has refused, for Reason.
	Refused
	// Declined: this side has declined, for Reason.
	Declined
	// Malformed: the partner's first frame is no valid request. It was refused for Reason.
	Malformed
)

// Ending is what to do with the stream in the end.
type Ending uint8

const (
	// Closing: the partner expects nothing more.
	Closing Ending = iota
	// Finishing: this side has sent the last frame, and the partner is to read it.
	Finishing
	// Resetting: the partner is to see an error.
	Resetting
)

// Result is the end of a conversation.
type Result struct {
	Outcome Outcome
	Ending  Ending
	Err     error       // of Failed, Refused and Malformed, and the cause of a quarantine
	Reason  wire.Reason // of Refused, Declined and Malformed
	Detail  string      // of Declined
	// Distance is the distance between the two models that the slices have shown, and
	// Retransmitted the number of blocks that had to be sent again.
	Distance      float64
	Retransmitted int
	// InDoubt is the number of slices that the partner may have applied and this side has
	// not.
	InDoubt int
	// Waited is how long this side waited in vain for the partner's first slice.
	Waited time.Duration
	// Quarantine is the period of the partner's quarantine; 0 if there is none.
	Quarantine time.Duration
}

// Errors that end conversations, to be tested with errors.Is.
var (
	// ErrAborted: this side's averaging machine has given the exchange up, or the peer is closing.
	ErrAborted = errors.New("the exchange was given up at this side: its deadline, or its partner is lost")
	// ErrLaneMissing: every lane that was opened has ended before all slices came.
	ErrLaneMissing = errors.New("the partner has closed its lanes before all slices came")
)

// OwnFault is an error of this side's own values, for which the partner is not to blame. It
// does not unwrap to Err, so errors.Is finds no fault of the partner.
type OwnFault struct{ Err error }

// Error says what cannot be sent.
func (e *OwnFault) Error() string { return "what is to be sent: " + e.Err.Error() }

// side is what all conversations have in common.
type side struct {
	local   *Host
	partner topology.PeerID
	id      uint64 // of the exchange or transfer
	began   time.Duration
	bounds  Bounds
	phase   phase
	err     error
	// unsummed: slices have no checksums, because the partner has declared its transport sealed.
	unsummed bool
}

// phase is the progress of a conversation. Each kind of conversation has some of these.
type phase uint8

const (
	opening    phase = iota // its first message is to be sent, or to come
	entering                // the driver is to take up the request
	inquiring               // questions about slices in doubt are asked
	asking                  // the averaging machine is to be asked
	answering               // the partner, or the averaging machine, is to answer
	agreeing                // the driver is to see Agreed
	accepting               // ACCEPT is to be sent
	ranging                 // ranges are on their way
	slicing                 // slices move
	confirming              // all has been sent; the partner is to confirm it
	informing               // a record is to be sent before a refusal
	refusing                // a refusal is to be sent
	over
)

func (s *side) begin(local *Host, now time.Duration, partner topology.PeerID, id uint64) {
	*s = side{local: local, partner: partner, id: id, began: now, bounds: Bounds{Frame: local.Links.Timeout(partner)}}
}

// Break implements Conversation.
func (s *side) Break(err error) { s.err, s.phase = err, over }

// Bounds implements Conversation.
func (s *side) Bounds() Bounds { return s.bounds }

// limit bounds the rest of the conversation by several times the duration of earlier ones with this partner.
func (s *side) limit() { s.bounds.End = s.began + s.local.Links.Budget(s.partner) }

// fail notes the first failure and tells whether this is it.
func (s *side) fail(err error) bool {
	if s.phase == over || s.err != nil {
		return false
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.err = err
	return true
}

// ended reports an exchange or transfer to the links.
func (s *side) ended(now time.Duration, seen Seen, r *Result) {
	s.local.Links.Ended(s.partner, links.Waits{Longest: seen.Longest, Opening: seen.Opening, Took: now - s.began}, r.Err)
	switch r.Outcome {
	case Failed:
		if _, theirs := replica.Blame(r.Err); theirs {
			r.Quarantine = s.local.Links.Quarantine(s.partner, now)
		}
	case Finished:
		if r.Err = s.local.Replica.Judgement().GraveHarm(string(s.partner)); r.Err != nil {
			r.Quarantine = s.local.Links.Quarantine(s.partner, now)
		}
	}
}

// pack encodes a message as the frame to send. It is a function because methods have no
// type parameters, and a message passed as an interface would be allocated.
func pack[M wire.Message](buf *[]byte, exchange uint64, m M) ([]byte, error) {
	frame, err := wire.Pack(*buf, exchange, m)
	if err == nil {
		*buf = frame
	}
	return frame, err
}

// packTerms is pack for the two messages that agree on an exchange, which declare whether
// slices may go without checksums.
func packTerms[M wire.Message](l *Host, buf *[]byte, exchange uint64, m M) ([]byte, error) {
	frame, err := pack(buf, exchange, m)
	if err == nil && l.Sealed {
		err = wire.Seal(frame, wire.Header{Type: m.Type(), Exchange: exchange, Flags: wire.FlagSealed})
	}
	return frame, err
}

// event makes an event for the exchange or transfer of a conversation.
func (s *side) event(kind averaging.EventKind, inbound bool) collective.Event {
	return collective.Event{Event: averaging.Event{Kind: kind, Peer: s.partner, Exchange: averaging.ExchangeID(s.id), Inbound: inbound}}
}

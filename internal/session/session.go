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

// Do is what a conversation has its driver do next.
type Do uint8

const (
	// Wait for the partner: Receive takes its next frame, Close the end of its stream,
	// Fail whatever else ends the wait.
	Wait Do = iota
	// Send the frame.
	Send
	// CloseWrite says to the partner that nothing more is sent on this stream.
	CloseWrite
	// Enter: the partner asks for what the averaging machine decides on. Nothing of it
	// has been answered yet.
	Enter
	// Ask the averaging machine about Event, and give Answer what it says.
	Ask
	// Agreed: both sides have agreed on the terms. Of a conversation that this side began
	// the averaging machine is to be told. Frames of any size may follow, and Bounds has
	// changed.
	Agreed
	// Slices: from now on slices move, and further lanes may be driven. Bounds has
	// changed.
	Slices
	// Lane: the stream is a further lane of an exchange that this side serves. Give it to
	// ServedLane of that, or Decline.
	Lane
	// Tell: the stream is one of words, and the frame that has come is the first of them. The
	// conversation ends here: Word is what each of them tells.
	Tell
	// Over: nothing more is said. End tells what has become of it.
	Over
)

// Speaker is what says and hears the frames of a stream. It is for one goroutine.
type Speaker interface {
	// Next says what is to be done next. A frame that is to be sent is valid until the
	// next call of any method; buf is scratch that it may be in, and that may grow.
	Next(now time.Duration, buf *[]byte) (frame []byte, do Do)
	// Receive takes the partner's next frame. The payload may be overwritten.
	Receive(now time.Duration, header wire.Header, payload []byte)
	// Close takes the end of the partner's stream.
	Close()
	// Fail ends the conversation because of what happened to its stream. Next may still
	// have something to send. Of several failures the first counts.
	Fail(err error)
}

// Conversation is one end of what is said on a stream. It is for one goroutine.
type Conversation interface {
	Speaker
	// Break ends the conversation for a reason that its stream does not show, whatever
	// has failed because of it.
	Break(err error)
	// Bounds are those of the waits for the partner.
	Bounds() Bounds
	// End is called once, after Over, with what the driver has seen.
	End(now time.Duration, seen Seen) Result
}

// Bounds are how long the partner is waited for.
type Bounds struct {
	// Frame bounds the wait for a whole frame, and First, if it is not 0, that for the
	// first sign of the next one.
	Frame, First time.Duration
	// End is when the conversation is given up even if it moves on; 0 is never.
	End time.Duration
}

// Seen is what only a driver knows of the streams of a conversation.
type Seen struct {
	Sent, Received uint64 // bytes, on all lanes
	// Longest was the longest wait for a frame, Opening that for the first one after
	// Slices of a conversation that the partner began.
	Longest, Opening time.Duration
}

// Outcome is what has become of a conversation.
type Outcome uint8

const (
	// Nothing that anybody need know: questions and words end like this.
	Nothing Outcome = iota
	// Finished: all has been applied at this side.
	Finished
	// Failed: it broke off, for Err.
	Failed
	// Refused: the partner did not want it, for Reason.
	Refused
	// Declined: this side did not want it, for Reason.
	Declined
	// Malformed: what the partner has sent is no request. It was refused for Reason.
	Malformed
)

// Ending is what to do with the stream in the end.
type Ending uint8

const (
	// Closing: the partner waits for nothing more.
	Closing Ending = iota
	// Finishing: the last word was this side's, and the partner is to read it.
	Finishing
	// Resetting: the partner is to see that something is wrong.
	Resetting
)

// Result is the end of a conversation.
type Result struct {
	Outcome Outcome
	Ending  Ending
	Err     error       // of Failed, Refused and Malformed, and what the partner is kept away for
	Reason  wire.Reason // of Refused, Declined and Malformed
	Detail  string      // of Declined
	// Distance is that of the two models, as the slices have shown it, and Again the
	// number of blocks that had to be sent again.
	Distance      float64
	Retransmitted int
	// InDoubt is the number of slices that the partner may have applied and this side has
	// not.
	InDoubt int
	// Waited is how long the partner was waited for in vain, before any slice of its came.
	Waited time.Duration
	// Quarantine is for how long the partner is kept away for what it did; 0 if it is not.
	Quarantine time.Duration
}

// Errors that end conversations, to be tested with errors.Is.
var (
	// ErrAborted: this side's averaging machine has given it up, or the peer is closing.
	ErrAborted = errors.New("the exchange was given up at this side: its deadline, or its partner is lost")
	// ErrLaneMissing: every lane that was opened has ended before all slices came.
	ErrLaneMissing = errors.New("the partner has closed its lanes before all slices came")
)

// OwnFault is an error of this side's own, for which the partner is not to be blamed: it
// is none of those that it holds.
type OwnFault struct{ Err error }

// Error tells what cannot be sent.
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
	// unsummed: slices go without checksums, which the partner has declared to be no loss.
	unsummed bool
}

// phase is how far a conversation is. Each kind of conversation has some of these.
type phase uint8

const (
	opening    phase = iota // its first message is to be sent, or to come
	entering                // the driver has yet to take it up
	inquiring               // what is in doubt is asked for
	asking                  // the averaging machine is to be asked
	answering               // the partner, or the averaging machine, is to answer
	agreeing                // the driver is to know that it has
	accepting               // ACCEPT is to be sent
	ranging                 // ranges are on their way
	slicing                 // slices move
	confirming              // all has been said; the partner has to show that it has got it
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

// limit bounds what is left by several times what others with this partner took.
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

// ended has the links learn from a conversation that averaged something, or was to.
func (s *side) ended(now time.Duration, seen Seen, r *Result) {
	s.local.Links.Ended(s.partner, links.Waits{Longest: seen.Longest, Opening: seen.Opening, Took: now - s.began}, r.Err)
	if r.Outcome != Failed {
		return
	}
	if _, theirs := replica.Blame(r.Err); theirs {
		r.Quarantine = s.local.Links.Quarantine(s.partner, now)
	}
}

// pack makes a message the frame to be sent. It is no method because those have no type
// parameters: a message passed as an interface would be allocated.
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

// event is about the exchange or transfer of a conversation.
func (s *side) event(kind averaging.EventKind, inbound bool) collective.Event {
	return collective.Event{Event: averaging.Event{Kind: kind, Peer: s.partner, Exchange: averaging.ExchangeID(s.id), Inbound: inbound}}
}

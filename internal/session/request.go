package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// request takes the partner's first frame. A partner that is no member, as far as this peer
// knows, is refused whatever it asks: it gets no place, and no answer to a question. If it
// is a member, its record will arrive soon, or it compares its membership with this peer.
func (s *Served) request(now time.Duration, h wire.Header, payload []byte) (err error) {
	if !s.local.Peer.Member(s.partner) {
		s.id = h.Exchange
		s.Decline(wire.ReasonNotMember, "this peer has no record of yours")
		return nil
	}
	s.began = now
	switch h.Type {
	case wire.TypePropose:
		if err = s.proposal.Decode(payload); err == nil {
			s.proposed(now, h)
		}
	case wire.TypeOffer:
		if err = s.offer.Decode(payload); err == nil {
			s.offered(now, h)
		}
	case wire.TypeLane:
		var lane wire.Lane
		err = lane.Decode(payload)
		s.number = int(lane.Lane)
		s.id = h.Exchange
	case wire.TypeStatus:
		err = s.answer.receive(s.local, s.partner, h, payload)
	case wire.TypeTell, wire.TypeSum:
		if !s.local.Traits.Messages {
			s.Decline(wire.ReasonRound, "the algorithm of this peer heeds no words")
			return nil
		}
	default:
		return fmt.Errorf("waiting for a proposal: got %v: %w", h.Type, wire.ErrType)
	}
	if err == nil {
		s.kind = h.Type
	}
	return err
}

// proposed checks a proposal, and refuses what is impossible whatever the averaging machine decides.
func (s *Served) proposed(now time.Duration, h wire.Header) {
	s.id, s.phase, s.unsummed = h.Exchange, entering, s.local.unsummed(h)
	s.wanted = s.event(averaging.Proposed, true)
	s.wanted.Incarnation = s.proposal.Incarnation
	s.codecs, s.refusal.Reason, s.refusal.Detail = s.local.examine(now, s.partner, &s.proposal.Opening, s.codecs)
}

// offered checks the offer of a transfer.
func (s *Served) offered(now time.Duration, h wire.Header) {
	s.id, s.phase = h.Exchange, entering
	s.wanted = s.event(collective.Offered, true)
	s.wanted.Transfer = replica.TransferOf(&s.offer)
	s.refusal.Reason, s.refusal.Detail = s.consider(now)
}

// consider finds what makes a transfer impossible, whatever the averaging machine thinks of
// it. The reason is 0 if nothing does.
func (s *Served) consider(now time.Duration) (reason wire.Reason, detail string) {
	if s.codecs, reason, detail = s.local.examine(now, s.partner, &s.offer.Opening, s.codecs); reason != 0 {
		return reason, detail
	}
	if !s.local.Traits.Gradients && !s.local.Traits.Pools {
		return wire.ReasonRound, "this peer averages models by exchanges, and takes no transfers"
	}
	if s.codecs = direct(s.codecs); len(s.codecs) == 0 {
		return wire.ReasonCodec, "gradients are sent as raw, bf16, fp16 or int8"
	}
	if !s.local.Traits.Gradients {
		if !slices.Contains(s.codecs, coding.Raw) {
			return wire.ReasonCodec, "models are sent as raw"
		}
		s.codecs = append(s.codecs[:0], coding.Raw)
	}
	if err := s.taking().Check(); err != nil {
		s.period = s.local.Links.Quarantine(s.partner, now)
		return wire.ReasonProtocol, err.Error()
	}
	return 0, ""
}

// taking are the terms of an incoming transfer.
func (s *Served) taking() replica.TransferTerms {
	return replica.TransferTerms{Exchange: s.id, Transfer: s.wanted.Transfer, Codecs: s.codecs}
}

// Answer takes the averaging machine's answer.
func (s *Served) Answer(now time.Duration, a averaging.Action) {
	if s.phase != answering {
		return
	}
	if a.Kind != averaging.Accept {
		s.Decline(replica.ReasonOf(a.Reason), "")
		return
	}
	state := s.local.Peer.Now()
	s.accept = wire.Accept{
		Codecs: links.Numbers(s.accept.Codecs, s.codecs), Window: 1, Overlap: 1, Lanes: 1,
		Steps: state.Steps, Incarnation: state.Incarnation,
	}
	s.agreed, s.phase = true, agreeing
	s.limit()
	if s.kind == wire.TypePropose {
		s.respond(a)
		return
	}
	if err := s.receiver.Begin(s.taking()); err != nil {
		s.Fail(err)
	}
}

// respond begins an exchange in the replica.
func (s *Served) respond(a averaging.Action) {
	l, across := s.local, a.Across
	if s.proposal.View != a.View {
		across = min(across, 1) // the two may not agree on who is at their sites
	}
	overlap := min(max(a.Overlap, int(s.proposal.Overlap), 1), maxOverlap)
	s.responder.Begin(replica.Terms{
		Partner: string(s.partner), Incarnation: s.proposal.Incarnation, Exchange: s.id, Codecs: s.codecs,
		Window: l.granted(), Lanes: min(int(s.proposal.Lanes), l.lanes()), Overlap: overlap,
		Across: across, Unsummed: s.unsummed,
	})
	for i := range s.responder.Lanes() {
		s.lanes[i].begin(s.responder.Lane(i), s.id)
	}
	s.accept.Window, s.accept.Lanes, s.accept.Overlap = uint16(s.responder.Window()), uint8(s.responder.Lanes()), uint8(overlap)
}

// MessageOf decodes a frame of a message. accepted is false if the partner is in quarantine.
func MessageOf(local *Host, now time.Duration, partner topology.PeerID, h wire.Header, payload []byte) (message collective.Message, accepted bool, err error) {
	switch h.Type {
	case wire.TypeTell:
		var m wire.Tell
		err = m.Decode(payload)
		message = collective.Message{Kind: m.Kind, Round: m.Round, View: m.View, Value: m.Value}
	case wire.TypeSum:
		message.Sum = new(wire.Sum)
		err = message.Sum.Decode(payload)
	default:
		err = fmt.Errorf("waiting for %v: got %v: %w", wire.TypeTell, h.Type, wire.ErrType)
	}
	if err != nil {
		return collective.Message{}, false, err
	}
	return message, local.Links.Quarantined(partner, now) == 0, nil
}

// Message is the wire form of a message.
func Message(w collective.Message) wire.Message {
	if w.Sum != nil {
		return w.Sum
	}
	return wire.Tell{Kind: w.Kind, Round: w.Round, View: w.View, Value: w.Value}
}

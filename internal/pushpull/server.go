// Package pushpull gives programs beside the training runs of the parameters that this peer serves, and takes gradients
// for them: see docs/design/051.
package pushpull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxStale is how many updates the parameters of a gradient may be behind. In runs whose servers wait for nobody, each
// gradient of a worker makes one.
const MaxStale = 64

// Config is what a server needs from its peer.
type Config struct {
	*requests.Requests
	Layout  [wire.HashSize]byte
	Replica *replica.Replica
	Loop    Loop
	// Member tells whether a peer is a member.
	Member     func(transport.PeerID) bool
	Quarantine interface {
		Quarantined(transport.PeerID) time.Duration
	}
}

// Loop is the goroutine that owns the machine.
type Loop interface {
	// Look has the loop call a function, and waits for it. It returns false if the loop has ended.
	Look(func()) bool
	// Event tells the machine of an event. It returns false if the loop has ended.
	Event(collective.Event) bool
}

// Server answers requests for runs of values. Safe for concurrent use.
type Server struct {
	Config
	machine collective.Server
	self    transport.PeerID
}

// New makes a server of the parameters that a machine knows about.
func New(config Config, machine collective.Server) *Server {
	return &Server{Config: config, machine: machine, self: config.Transport.Self()}
}

// Serve answers a request, until ctx ends. An error means that no request that makes sense could be read.
func (s *Server) Serve(ctx context.Context, stream *framed.Stream) error {
	var request wire.Values
	if _, err := stream.Receive(&request); err != nil {
		return err
	}
	reason, detail := wire.Differs(s.Run, s.Layout, s.Run, request.Layout)
	switch left := s.Quarantine.Quarantined(stream.Remote()); {
	case reason != 0:
	case left > 0:
		reason, detail = wire.ReasonQuarantine, fmt.Sprintf("for another %s", left.Round(time.Second))
	case !s.Member(stream.Remote()):
		reason = wire.ReasonNotMember
	case request.First+request.Count > uint64(s.Replica.Len()) || !s.Replica.Run(int(request.First), int(request.Count)).Shared():
		return fmt.Errorf("%d values from %d on, which the model does not have or its members do not share: %w", request.Count, request.First, wire.ErrMessage)
	}
	if reason != 0 {
		stream.Refuse(0, reason, detail)
		return nil
	}
	defer context.AfterFunc(ctx, stream.Reset)()
	return s.answer(stream, request)
}

// answer answers a request of a member for values that there are. What has come of a gradient that breaks off stays in the sum.
func (s *Server) answer(stream *framed.Stream, request wire.Values) error {
	served, part, here := s.find(request)
	stale := int64(served.Version - request.Version)
	switch {
	case !here:
		stream.Refuse(0, wire.ReasonClosing, "")
		return nil
	case served.Count > 0 && request.Samples > 0 && stale > MaxStale:
		stream.Refuse(0, wire.ReasonRound, fmt.Sprintf("the gradient is of parameters %d updates old, at most %d: pull them, and compute it anew", stale, MaxStale))
		return nil
	}
	err := framed.Say(stream, 0, served)
	switch first := int(request.First); {
	case err != nil || served.Count == 0:
	case request.Samples == 0:
		err = Send(stream, int(served.Count), func(at int, v tensor.Vector) { s.Replica.Run(first+at, len(v)).Read(v) })
	default:
		err = Receive(stream, int(served.Count), func(at int, v tensor.Vector) error {
			return s.Replica.Run(first+at, len(v)).AddGradient(v, float64(request.Samples))
		})
		if err == nil && s.Loop.Event(collective.Event{Event: averaging.Event{Kind: collective.Pushed}, Samples: int(request.Samples), Transfer: part}) {
			err = framed.Say(stream, 0, served)
		}
	}
	switch {
	case err == nil:
		stream.Finish()
	case errors.Is(err, replica.ErrImplausible):
		return fmt.Errorf("%w: %w", wire.ErrMessage, err)
	default:
		return err
	}
	return nil
}

// find tells who serves the beginning of a request's values, and of which part they are. It returns false if the loop has ended.
func (s *Server) find(request wire.Values) (served wire.Served, part collective.Transfer, here bool) {
	part.Parts = s.machine.Parts()
	_, end := s.Replica.Part(0, part.Parts)
	for int(request.First) >= end {
		part.Part++
		_, end = s.Replica.Part(part.Part, part.Parts)
	}
	here = s.Loop.Look(func() {
		by, version := s.machine.Served(part.Part)
		if served = (wire.Served{Version: version, Server: string(by)}); by == s.self {
			served.Server, served.Count = "", min(request.Count, uint64(end)-request.First)
		}
	})
	if here && served.Count == 0 && served.Server == "" {
		here = s.Loop.Event(collective.Event{Event: averaging.Event{Kind: collective.Wanted}})
	}
	return served, part, here
}

// Send sends so many values in frames, as read fills them in.
func Send(stream *framed.Stream, count int, read func(first int, values tensor.Vector)) error {
	values := make(tensor.Vector, min(count, replica.DefaultSliceLen))
	for first := 0; first < count; first += len(values) {
		values = values[:min(len(values), count-first)]
		read(first, values)
		stream.Frame = tensor.AppendBytes(wire.Reserve(stream.Frame), values)
		if err := stream.Seal(wire.Header{Type: wire.TypeStateSlice}); err != nil {
			return err
		}
	}
	return nil
}

// Receive reads so many values from frames, and has them taken. It fails if a partner sends what are no values.
func Receive(stream *framed.Stream, count int, take func(first int, values tensor.Vector) error) error {
	stream.Limit(replica.DefaultSliceLen * tensor.ValueSize)
	values := make(tensor.Vector, min(count, replica.DefaultSliceLen))
	for first := 0; first < count; first += len(values) {
		header, payload, err := stream.Await(wire.TypeStateSlice)
		switch {
		case err != nil:
			return err
		case header.Type == wire.TypeRefuse:
			return wire.Refused(payload)
		case header.Type != wire.TypeStateSlice:
			return fmt.Errorf("waiting for values: got %v: %w", header.Type, wire.ErrType)
		}
		values = values[:min(len(values), count-first)]
		if len(payload) != len(values)*tensor.ValueSize {
			return fmt.Errorf("%d bytes for %d values: %w", len(payload), len(values), wire.ErrMessage)
		}
		tensor.FromBytes(values, payload)
		if err := take(first, values); err != nil {
			return err
		}
	}
	return nil
}

// Package paramclient pulls ranges of the parameters that the parameter servers of a run serve, and pushes gradients for
// them: for a service that computes gradients in a loop of its own, or only wants the newest parameters. Its node trains
// nothing and needs the layout of the model alone. See docs/design/051.
package paramclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/pushpull"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxStale is how many updates the parameters of a gradient may be behind. With a gate other than BSP, each push of a
// worker makes an update.
const MaxStale = pushpull.MaxStale

// Errors to be tested with errors.Is.
var (
	// ErrRange: the layout has no such range, or members do not share it, or a vector has another length.
	ErrRange = errors.New("no such range")
	// ErrStale: the gradient is of parameters more than MaxStale updates old. Pull them, and compute it anew.
	ErrStale = errors.New("the gradient is of parameters that are too old")
	// ErrNotFinite: a gradient, or what a server sent, holds NaN or infinite values.
	ErrNotFinite = errors.New("values that are not finite")
)

var errItself = errors.New("this member serves it itself: use its trainer")

const (
	again   = 50 * time.Millisecond // until the next question, where nobody served the range
	maxHops = 4                     // from one member to another that it names
)

// Client pulls and pushes for one member. Safe for concurrent use.
type Client struct {
	service *peer.Service
	self    transport.PeerID
	layout  *tensor.Layout
}

// New makes a client for a model with this layout, which is that of the members that train. Close it before the node.
func New(n *peer.Node, layout *tensor.Layout) (*Client, error) {
	service, err := peer.Serve(n, transport.ProtocolValues, nil)
	if err != nil {
		return nil, err
	}
	return &Client{service: service, self: n.Self(), layout: layout}, nil
}

// Close ends the client, and waits for its streams. It is idempotent.
func (c *Client) Close() { c.service.Close() }

// Version says which updates the parameters of a range have: each server of its values counts its own. The zero value has
// none.
type Version struct{ parts []part }

// part is the values of a server, which end before one, with their update.
type part struct{ end, update uint64 }

// Updates is how many updates all of the parameters have at least.
func (v Version) Updates() uint64 {
	if len(v.parts) == 0 {
		return 0
	}
	return slices.MinFunc(v.parts, func(a, b part) int { return cmp.Compare(a.update, b.update) }).update
}

// of is the update of a value.
func (v Version) of(value uint64) uint64 {
	for _, p := range v.parts {
		if value < p.end {
			return p.update
		}
	}
	return 0
}

// Pull copies the parameters of a range into dst, and returns their version, to be given with a gradient. Each value is of
// that version or a later one. Pull waits for servers until ctx ends.
func (c *Client) Pull(ctx context.Context, name string, dst tensor.Vector) (version Version, err error) {
	request, err := c.request(name, len(dst))
	if err != nil {
		return Version{}, fmt.Errorf("pulling %q: %w", name, err)
	}
	base := int(request.First)
	version, err = c.each(ctx, request, Version{}, func(s *framed.Stream, first, count int) error {
		return pushpull.Receive(s, count, func(at int, v tensor.Vector) error {
			if !tensor.Finite(v) {
				return ErrNotFinite
			}
			copy(dst[first-base+at:], v)
			return nil
		})
	})
	if err != nil {
		return Version{}, fmt.Errorf("pulling %q: %w", name, err)
	}
	return version, nil
}

// Gradient is a gradient for a range, with what it was computed of.
type Gradient struct {
	Values tensor.Vector
	// Samples is the number of samples over which it is the mean, at least 1: its weight beside those of workers.
	Samples int
	// Version is what Pull returned with the parameters at which it was computed.
	Version Version
}

// Push gives a gradient to the servers of a range. It counts as a worker's would: with the gate BSP in the next update, else in
// one of its own. Where several servers have parts of the range, each takes its part, and says whether it is too old. After an
// error that satisfies neither errors.Is(err, ErrStale), ErrRange nor ErrNotFinite, a part of it may count: do not push it
// again. Push waits for servers until ctx ends, and not for the update.
func (c *Client) Push(ctx context.Context, name string, gradient Gradient) error {
	request, err := c.request(name, len(gradient.Values))
	switch {
	case err != nil:
	case gradient.Samples < 1 || gradient.Samples > math.MaxInt32:
		err = fmt.Errorf("%d samples: want 1 to %d", gradient.Samples, math.MaxInt32)
	case !tensor.Finite(gradient.Values):
		err = ErrNotFinite
	default:
		base := int(request.First)
		request.Samples = uint32(gradient.Samples)
		_, err = c.each(ctx, request, gradient.Version, func(s *framed.Stream, first, count int) error {
			own := gradient.Values[first-base:][:count]
			if err := pushpull.Send(s, count, func(at int, v tensor.Vector) { copy(v, own[at:]) }); err != nil {
				return err
			}
			_, err := s.Receive(&wire.Served{})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("pushing a gradient for %q: %w", name, err)
	}
	return nil
}

// request is what is asked for a range of so many values.
func (c *Client) request(name string, values int) (wire.Values, error) {
	at, known := c.layout.Lookup(name)
	switch {
	case !known:
		return wire.Values{}, fmt.Errorf("%w: the layout has none of this name", ErrRange)
	case at.Sharing != tensor.Shared:
		return wire.Values{}, fmt.Errorf("%w: members do not share it", ErrRange)
	case at.Len != values:
		return wire.Values{}, fmt.Errorf("%w: it has %d values, the vector %d", ErrRange, at.Len, values)
	}
	return wire.Values{Layout: c.layout.Hash(), First: uint64(at.Offset), Count: uint64(at.Len)}, nil
}

// each finds the servers of a run of values of a version, one after the other, and talks with each about its part. It returns
// their versions now. That members say that there is nothing to be had ends it once as many have said so in a row as there are.
func (c *Client) each(ctx context.Context, request wire.Values, of Version, talk func(s *framed.Stream, first, count int) error) (now Version, err error) {
	var fault error
	whom, members := c.member(0)
	for tries, hops, refused := 1, 0, 0; request.Count > 0; {
		request.Version = of.of(request.First)
		served, begun, err := c.ask(ctx, whom, request, talk)
		if served.Count == 0 && served.Server == string(c.self) {
			err = errItself
		}
		switch {
		case err == nil && served.Count > 0:
			request.First, request.Count = request.First+served.Count, request.Count-served.Count
			now.parts, hops = append(now.parts, part{request.First, served.Version}), 0
			continue
		case err == nil && served.Server != "" && hops < maxHops:
			whom, hops = transport.PeerID(served.Server), hops+1
			continue
		case err != nil && ctx.Err() == nil:
			if fault = fmt.Errorf("server %s: %w", whom, err); final(err) {
				refused++
			} else {
				refused = 0
			}
			if begun && (request.Samples > 0 || final(err)) || errors.Is(err, ErrStale) || refused > 0 && refused >= members {
				return now, fault
			}
		default:
			refused = 0
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return now, fmt.Errorf("waiting for members that serve parameters: %w", errors.Join(context.Cause(ctx), fault))
		}
		whom, members = c.member(tries)
		hops, tries = 0, tries+1
	}
	return now, nil
}

// ask asks a member for a run of values, and talks if it serves the first of them. Begun tells whether it does.
func (c *Client) ask(ctx context.Context, whom transport.PeerID, request wire.Values, talk func(s *framed.Stream, first, count int) error) (served wire.Served, begun bool, err error) {
	if whom == "" {
		return served, false, nil
	}
	err = c.service.Ask(ctx, whom, func(s *framed.Stream) error {
		if err := framed.Say(s, 0, request); err != nil {
			return err
		}
		if _, err := s.Receive(&served); err != nil || served.Count == 0 {
			return err
		}
		if served.Count > request.Count {
			return fmt.Errorf("%d values served of %d: %w", served.Count, request.Count, wire.ErrMessage)
		}
		begun = true
		return talk(s, int(request.First), int(served.Count))
	})
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok && refusal.Reason == wire.ReasonRound && request.Samples > 0 {
		err = fmt.Errorf("%w: %w", ErrStale, err)
	}
	return served, begun, err
}

// final tells whether it is useless to ask again.
func final(err error) bool {
	refusal, refused := errors.AsType[*wire.Refusal](err)
	_, theirs := wire.ReasonFor(err)
	return refused && (refusal.Reason.Permanent() || refusal.Reason == wire.ReasonProtocol) ||
		theirs || errors.Is(err, errItself) || errors.Is(err, ErrNotFinite)
}

// member is one of the members that have parameters, another for each number, and how many there are; empty if there is none.
func (c *Client) member(number int) (one transport.PeerID, members int) {
	var having []transport.PeerID
	for _, r := range c.service.Records() {
		if flock.Trains(r) || flock.ServesOnly(r) {
			having = append(having, r.Peer)
		}
	}
	if len(having) == 0 {
		return "", 0
	}
	return having[number%len(having)], len(having)
}

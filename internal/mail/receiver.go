package mail

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Rate limits the messages received from one partner, on all its streams together: PerSecond in the long
// run, AtOnce in a burst, AtFirst from a partner that is not remembered. Further messages wait at the
// sender's end of the stream. The zero value is no limit.
type Rate struct{ PerSecond, AtOnce, AtFirst int }

// maxLimits bounds the partners whose rate is remembered: the last ones. A limit outlives its
// stream; otherwise a partner could get a new limit with each new stream.
const maxLimits = 256

// receiver takes messages from partners, from one stream of each: the last.
type receiver struct {
	rate    Rate
	lost    func(from transport.PeerID, why error)
	closing context.Context

	mu     sync.Mutex
	breaks map[transport.PeerID]context.CancelFunc // ends the current stream
	limits *simplelru.LRU[transport.PeerID, *rate.Limiter]
}

func newReceiver(closing context.Context, c Config) *receiver {
	limits, _ := simplelru.NewLRU[transport.PeerID, *rate.Limiter](maxLimits, nil) // fails of sizes that are not positive
	return &receiver{rate: c.Rate, lost: c.Lost, closing: closing, breaks: make(map[transport.PeerID]context.CancelFunc), limits: limits}
}

// Receive calls take for each message on a stream, which replaces an older stream of the same partner.
// It ends when take fails or the stream ends: with io.EOF if the partner has closed it. The caller then
// closes or resets the stream. A payload is valid until take returns.
func (r *receiver) Receive(s *framed.Stream, take func(wire.Header, []byte) error) error {
	from := s.Remote()
	ctx, breaks := context.WithCancel(r.closing)
	defer breaks()
	stop := context.AfterFunc(ctx, s.Stream.Reset) // on its own goroutine: a reset may wait for the transport
	defer stop()
	r.mu.Lock()
	if older := r.breaks[from]; older != nil {
		older()
	}
	r.breaks[from] = breaks
	r.mu.Unlock()
	err := r.receive(ctx, s, take)
	r.mu.Lock()
	last := ctx.Err() == nil
	if last {
		delete(r.breaks, from)
	}
	r.mu.Unlock()
	if last && err != io.EOF {
		r.lost(from, err)
	}
	return err
}

// receive is Receive until ctx ends.
func (r *receiver) receive(ctx context.Context, s *framed.Stream, take func(wire.Header, []byte) error) error {
	limit := r.limit(s.Remote(), time.Now())
	s.Stall += idleAfter
	defer func() { s.Stall -= idleAfter }()
	for {
		header, payload, err := s.Next()
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && limit != nil {
			err = limit.Wait(ctx)
		}
		if err == nil {
			err = take(header, payload)
		}
		if err != nil {
			return err
		}
	}
}

// limit is the rate limit of a partner, nil if there is none.
func (r *receiver) limit(from transport.PeerID, now time.Time) *rate.Limiter {
	if r.rate == (Rate{}) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limit, known := r.limits.Get(from)
	if !known {
		limit = rate.NewLimiter(rate.Limit(r.rate.PerSecond), r.rate.AtOnce)
		limit.AllowN(now, r.rate.AtOnce-r.rate.AtFirst)
		r.limits.Add(from, limit)
	}
	return limit
}

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

// Rate is how many messages of one partner are received, on all its streams together: in the long run,
// at most at once, and of one of whom nothing is remembered. What it sends beyond them waits on its side
// of the stream. The zero value is no limit.
type Rate struct{ PerSecond, AtOnce, AtFirst int }

// maxLimits bounds the partners of whom is remembered what they have sent: the last. That outlives
// streams: a partner that begins one after the other would have a new limit each time.
const maxLimits = 256

// receiver takes messages from partners, from one stream of each: the last.
type receiver struct {
	rate    Rate
	lost    func(from transport.PeerID, why error)
	closing context.Context

	mu     sync.Mutex
	breaks map[transport.PeerID]context.CancelFunc // the stream that there is
	limits *simplelru.LRU[transport.PeerID, *rate.Limiter]
}

func newReceiver(closing context.Context, c Config) *receiver {
	limits, _ := simplelru.NewLRU[transport.PeerID, *rate.Limiter](maxLimits, nil) // fails of sizes that are not positive
	return &receiver{rate: c.Rate, lost: c.Lost, closing: closing, breaks: make(map[transport.PeerID]context.CancelFunc), limits: limits}
}

// Receive hands on the messages that come on a stream, in the place of an older one of the same partner,
// until take fails, which ends it, or the stream does: with io.EOF where the partner has closed it. What
// becomes of the stream then is the caller's to say. A payload is take's until it returns.
func (r *receiver) Receive(s *framed.Stream, take func(wire.Header, []byte) error) error {
	from := s.Remote()
	ctx, breaks := context.WithCancel(r.closing)
	defer breaks()
	stop := context.AfterFunc(ctx, s.Stream.Reset) // by itself: to reset is to wait for a transport
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

// limit is what a partner may send, nil where there is no limit.
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

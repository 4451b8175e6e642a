package conversations

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Ongoing is an exchange or a transfer under way at this peer, on either side. The machine
// can break it off at any time.
type Ongoing struct {
	event   collective.Event // Peer, Exchange and Inbound; Kind and the rest vary
	began   time.Time
	work    atomic.Int64 // nanoseconds spent on frames, by all goroutines together
	sent    atomic.Uint64
	got     atomic.Uint64
	opening time.Duration // from Slices to the partner's first frame, of an exchange served here
	steps   uint64        // of this peer when slices began to move
	codec   coding.ID     // the coarsest in use; 0 until slices move
	bounds  session.Bounds
	stopped atomic.Bool // the machine has broken it off

	mu      sync.Mutex
	lanes   []openLane
	first   [1]openLane        // room for the lane that every exchange has
	longest time.Duration      // waited for a frame, at most
	dialing context.CancelFunc // ends the opening of streams, if any have been opened
	broken  error              // why it was broken off, if it was
}

// newOngoing is an exchange that begins. It is never reused: a late Abort must not break
// off the next exchange.
func newOngoing(event collective.Event) *Ongoing {
	x := &Ongoing{event: event, began: time.Now()}
	x.lanes = x.first[:0]
	return x
}

// openLane is what ends a lane: its stream, and the channel on which its goroutine waits.
type openLane struct {
	stream transport.Stream
	opened chan<- struct{}
}

// add adds a lane. It returns false if the exchange is broken off.
func (x *Ongoing) add(t *conversation) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil {
		return false
	}
	x.lanes = append(x.lanes, openLane{t.Stream.Stream, t.opened})
	return true
}

// opens registers cancel, which ends the opening of a stream when the exchange ends.
func (x *Ongoing) opens(cancel context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.dialing = cancel
	if x.broken != nil {
		cancel()
	}
}

// breakOff ends every lane of the exchange. The first cause is the one reported; first
// tells whether this is it.
func (x *Ongoing) breakOff(cause error) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil {
		return false
	}
	x.broken = cause
	if x.dialing != nil {
		x.dialing()
	}
	for _, lane := range x.lanes {
		lane.stream.Reset()
		wake(lane.opened)
	}
	return true
}

// Abandon ends every lane of the exchange because this side gives it up.
func (x *Ongoing) Abandon() { x.breakOff(session.ErrAborted) }

// breakOffBut ends every lane of the exchange but one, on which the reason has been sent to
// the partner.
func (x *Ongoing) breakOffBut(keep transport.Stream, cause error) {
	x.mu.Lock()
	x.lanes = slices.DeleteFunc(x.lanes, func(lane openLane) bool { return lane.stream == keep })
	x.mu.Unlock()
	x.breakOff(cause)
}

// cause is why the exchange was broken off, nil if it was not.
func (x *Ongoing) cause() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broken
}

// worked adds the time since a moment to the work on frames; on a nil exchange it does
// nothing.
func (x *Ongoing) worked(since time.Time) {
	if x != nil {
		x.work.Add(int64(time.Since(since)))
	}
}

// agreed prepares for slices.
func (x *Ongoing) agreed(t *conversation, s session.Conversation, ids []coding.ID, steps uint64) {
	x.bounds = s.Bounds()
	x.steps, x.codec = steps, links.Coarsest(ids)
	x.joins(t)
}

// joins prepares a stream to be a lane of an exchange.
func (x *Ongoing) joins(t *conversation) {
	t.codec = x.codec
	t.within(x.bounds)
	t.Bulk()
}

// over counts the bytes of a lane that has ended.
func (x *Ongoing) over(t *conversation) {
	x.sent.Add(t.Sent)
	x.got.Add(t.Received)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.longest = max(x.longest, t.Longest)
}

// seen is the summary of the streams once all lanes have ended.
func (x *Ongoing) seen() session.Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return session.Seen{Sent: x.sent.Load(), Received: x.got.Load(), Longest: x.longest, Opening: x.opening}
}

// exchange carries one lane through: one goroutine writes, this one reads, so that both
// directions of the stream are in use. Afterwards the partner need only close its end,
// which it does once it has applied everything of this lane. It returns false if the
// exchange failed because of a wait on this lane.
func (x *Ongoing) exchange(lane *session.SendingLane, t *conversation) (sound bool) {
	if x.cause() != nil {
		return true
	}
	t.calm()
	go func() { t.written <- x.write(lane, t) }()
	sound = true
	if err := x.read(lane, t); err != nil {
		sound = !x.breakOff(err)
	}
	wake(t.opened)
	return <-t.written && sound
}

// write sends slices as the window allows, and finally the acknowledgement of them all. It
// returns the same as exchange.
func (x *Ongoing) write(lane *session.SendingLane, t *conversation) (sound bool) {
	for {
		began := time.Now()
		frame, do, err := lane.Next(began.Sub(t.started), &t.Frame)
		x.worked(began)
		switch {
		case err != nil:
		case do == session.Send:
			err = t.Later(frame)
		case do == session.CloseWrite:
			err = t.CloseWrite() // the partner need not wait for other lanes
		case do == session.Over:
			return true
		default:
			if err = t.Flush(); err == nil {
				<-t.opened
			}
			if x.cause() != nil {
				return true
			}
		}
		if err != nil {
			return !x.breakOff(fmt.Errorf("sending a slice: %w", err))
		}
	}
}

// read applies differences until the lane has nothing left to wait for.
func (x *Ongoing) read(lane *session.SendingLane, t *conversation) error {
	for !lane.Over() {
		header, payload, err := t.Next()
		if err == io.EOF {
			return lane.Close()
		}
		if err != nil {
			return fmt.Errorf("waiting for a difference: %w", err)
		}
		began := time.Now()
		err = lane.Receive(header, payload)
		x.worked(began)
		if err != nil {
			return err
		}
		if !t.Ready() { // if more frames are ready, more of the window opens at once
			wake(t.opened)
		}
	}
	return nil
}

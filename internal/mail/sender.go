package mail

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// idleAfter is the time without a message after which a stream is closed.
	idleAfter = 30 * time.Second
	// restFor is the pause after a partner could not be reached.
	restFor = 500 * time.Millisecond
)

// sender sends the messages for one partner.
type sender struct {
	Config
	to              transport.PeerID
	queue           *queue
	closing, broken context.Context
	retire          func(to transport.PeerID) bool // removes the partner, unless a message has come

	stream  transport.Stream // nil while there is none
	watch   chan struct{}    // closed when the other end has sent something, or ended the stream
	unbind  func() bool      // detaches the stream from the context that resets it
	timeout time.Duration    // with the stream
	batch   []byte
}

// run sends the messages of the queue until the mailbox is closed and all are sent, or none has come
// for a while.
func (s *sender) run() {
	defer s.hangUp()
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		closed := s.closing.Err() != nil // no message comes after those in the queue
		s.batch = s.queue.take(s.batch[:0])
		switch {
		case len(s.batch) > 0:
			if err := s.write(); err != nil {
				s.giveUp(err)
			}
			continue
		case closed:
			return
		}
		idle.Reset(idleAfter)
		select {
		case <-s.queue.wake:
		case <-s.closing.Done():
		case <-idle.C:
			if s.retire(s.to) {
				return
			}
		}
	}
}

// write sends the batch, over a new stream if there is none or it has broken; but not after a timeout of
// the partner.
func (s *sender) write() error {
	if s.stream != nil {
		began := time.Now()
		if err := s.send(); err == nil || time.Since(began) >= s.timeout {
			return err
		}
		s.lose()
	}
	if err := s.open(); err != nil {
		return fmt.Errorf("opening a stream for messages: %w", err)
	}
	return s.send()
}

// send writes the batch to the stream.
func (s *sender) send() error {
	if err := s.stream.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	n, err := s.stream.Write(s.batch)
	s.Counters.Moved(0, uint64(n), 0)
	return err
}

// open opens a stream, and reads from it: nothing is expected on it, and its end shows that the partner
// is gone, or does not know the protocol.
func (s *sender) open() error {
	if s.timeout = s.Stall; s.Timeout != nil {
		s.timeout = s.Timeout(s.to)
	}
	ctx, cancel := context.WithTimeout(s.broken, s.timeout)
	defer cancel()
	stream, err := s.Transport.Open(ctx, s.to, s.Protocol, s.Run)
	if err != nil {
		return err
	}
	watch := make(chan struct{})
	s.stream, s.watch, s.unbind = stream, watch, context.AfterFunc(s.broken, stream.Reset)
	go func() { // lose waits for it
		defer close(watch)
		var one [1]byte
		if _, err := stream.Read(one[:]); err != nil && err != io.EOF {
			stream.Reset() // so that writes fail too
			s.Lost(s.to, err)
		}
	}()
	return nil
}

// giveUp drops the messages for a partner that cannot be reached or does not take them: they would be
// out of date later.
func (s *sender) giveUp(why error) {
	s.lose()
	s.queue.mu.Lock()
	s.queue.drop()
	s.queue.mu.Unlock()
	s.Lost(s.to, why)
	rest, cancel := context.WithTimeout(s.closing, restFor)
	defer cancel()
	<-rest.Done()
}

// lose ends the stream at once.
func (s *sender) lose() {
	if s.stream != nil {
		s.unbind()
		s.stream.Reset()
		<-s.watch
		s.stream = nil
	}
}

// hangUp ends the stream in good order: the other end closes it once it has read all. With Confirmed, hangUp
// waits for that.
func (s *sender) hangUp() {
	if s.stream == nil {
		return
	}
	late := time.AfterFunc(s.timeout, s.stream.Reset)
	defer late.Stop()
	end := s.stream.Close
	if s.Confirmed {
		end = s.stream.CloseWrite
	}
	if end() == nil {
		<-s.watch
	}
	if s.Confirmed {
		s.lose()
	}
	s.unbind()
}

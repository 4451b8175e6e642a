package sumtalks

import (
	"context"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// idleAfter is after what time without a word a stream is closed.
const idleAfter = 30 * time.Second

// restFor is how long a partner is left alone that could not be reached.
const restFor = 500 * time.Millisecond

// speaker tells one member what there is to say to it.
type speaker struct {
	*Talks
	to     seam.PeerID
	queue  *queue
	stream seam.Stream
	watch  chan struct{} // closed when the watch over the stream has ended
	buf    []byte
}

// run says what comes into the queue until that is closed and empty, or nothing has come for a
// while.
func (s *speaker) run() {
	defer s.hangUp()
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		var closed bool
		s.buf, closed = s.queue.take(s.buf[:0])
		switch {
		case len(s.buf) > 0:
			if err := s.write(); err != nil {
				s.queue.drop()
				s.lose()
				s.broken(s.to, err)
				s.rest()
			}
			idle.Reset(idleAfter)
			continue
		case closed:
			return
		}
		select {
		case <-s.queue.wake:
		case <-idle.C:
			if s.retire() {
				return
			}
			idle.Reset(idleAfter)
		}
	}
}

// rest waits before a partner is tried again that could not be reached.
func (s *speaker) rest() {
	timer := time.NewTimer(restFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ended:
	}
}

// write sends what was taken, over a new stream if there is none or it has broken.
func (s *speaker) write() error {
	if s.watch != nil {
		select {
		case <-s.watch:
			s.lose()
		default:
		}
	}
	if s.stream == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if err := s.stream.SetWriteDeadline(time.Now().Add(s.Stall)); err != nil {
		return err
	}
	n, err := s.stream.Write(s.buf)
	s.Moved(uint64(n), 0)
	return err
}

// open opens a stream, and watches over it: the other end says nothing on it, and its end is how
// one hears that it is gone, or knows no sums.
func (s *speaker) open() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.Stall)
	defer cancel()
	stream, err := s.Transport.Open(ctx, s.to, seam.ProtocolSum, s.Run)
	if err != nil {
		return err
	}
	watch := make(chan struct{})
	s.stream, s.watch = stream, watch
	if !s.group.Spawn(func() {
		defer close(watch)
		var one [1]byte
		if _, err := stream.Read(one[:]); err != nil && err != io.EOF {
			s.broken(s.to, err)
		}
	}) {
		close(watch)
	}
	return nil
}

// lose gives a stream up that has broken.
func (s *speaker) lose() {
	if s.stream != nil {
		s.stream.Reset()
		<-s.watch
		s.stream, s.watch = nil, nil
	}
}

// hangUp ends the stream in good order: the other end closes it once it has read all.
func (s *speaker) hangUp() {
	if s.stream == nil {
		return
	}
	if s.stream.CloseWrite() != nil {
		s.stream.Reset()
	}
	late := time.AfterFunc(s.Stall, s.stream.Reset)
	defer late.Stop()
	<-s.watch
	s.stream.Reset()
}

// retire ends the speaker if nothing has come meanwhile.
func (s *speaker) retire() (retired bool) {
	done := s.do(func() {
		if retired = s.queue.empty(); retired {
			delete(s.speakers, s.to)
		}
	})
	return retired || !done
}

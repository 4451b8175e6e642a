// Package meetings lets the members of a flock meet again and again, while they come and go, and while the network breaks and heals:
// each brings a block, and all that are there get the blocks of all, by Node.Gather of package peer.
//
// Gather needs a name that all know and nobody has used, so meetings are numbered, by three rules. Numbers only grow. Who comes to a
// meeting that is over goes on to the next; every 32nd and every 1,024th is a mark, by which it goes in leaps. And who has waited for
// Patience asks whether a mark further on is over, and leaps too, while who is ahead waits. So once all reach each other, all are at one
// meeting within twice the sum of peer.Sums.Timeout, of 40 s or more, and Patience, whatever was before. One that is alone meets alone.
//
// That others have met without this member (ErrMissed) is for the caller to judge: package follow goes on, package search ends. Limits:
// with fewer than Sums.AtLeast members a meeting fails (peer.ErrTooFew), and two groups that were both too small may stay apart; after
// thousands of other sums between two marks members forget the marks. What to say at them: packages plan, search and follow.
package meetings

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// Flock is the members that meet: a peer.Node or peer.Peer. Several goroutines call it at once.
type Flock interface {
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
}

// Patience is how long a member waits, at one meeting or several, before it asks whether others are ahead: longer than it takes to find one dead.
const Patience = 30 * time.Second

const (
	near, far = 32, 1024        // meetings from mark to mark
	probe     = 2 * time.Second // is how long an answer about a mark is waited for, and the least wait before one is asked for
)

// ErrMissed: others have met without this member since it was last at a meeting. This one it was at.
var ErrMissed = errors.New("the others have met without this member")

// Meetings are those of one name, for one goroutine. The zero value is a newcomer.
type Meetings struct {
	next   int           // the number of the next
	been   uint64        // 1 + the number of the last that this member was at
	waited time.Duration // since this member last asked whether others are ahead
}

// gathering is a meeting by its number.
type gathering func(ctx context.Context, number int, data []byte) ([][]byte, error)

// Gather is the next meeting of a name: the blocks of all that are there, in their order, also with ErrMissed. After other errors it may be called again.
func (m *Meetings) Gather(ctx context.Context, flock Flock, name string, block []byte) (blocks [][]byte, err error) {
	gather := gathering(func(ctx context.Context, number int, data []byte) ([][]byte, error) {
		return flock.Gather(ctx, fmt.Sprint(name, "/", number), data)
	})
	for {
		number := m.next
		all, leapt, err := m.attend(ctx, gather, append(binary.AppendUvarint(nil, m.been), block...))
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		over, mark := errors.Is(err, peer.ErrSumOver), number%near == 0
		switch m.next = max(m.next, number+1); {
		case err == nil:
			return m.held(ctx, gather, number, all)
		case mark && !leapt && (over || errors.Is(err, peer.ErrTooFew)): // who asks for a mark may make it fail
			m.leap(ctx, gather)
		case !leapt && !over:
			return nil, fmt.Errorf("meeting %d of the members with %s: %w", number, name, err)
		}
	}
}

// attend takes part in the next meeting, unless others are ahead: then it leaps.
func (m *Meetings) attend(ctx context.Context, gather gathering, said []byte) (all [][]byte, leapt bool, err error) {
	waiting, stop := context.WithCancel(ctx)
	number, ended := m.next, make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		all, err = gather(waiting, number, said)
	}()
	for !leapt && waiting.Err() == nil {
		began := time.Now()
		pause, end := context.WithTimeout(waiting, max(Patience-m.waited, probe))
		<-pause.Done()
		if end(); waiting.Err() == nil {
			leapt = m.leap(waiting, gather)
		}
		if m.waited += time.Since(began); leapt || waiting.Err() == nil {
			m.waited = 0
		}
	}
	stop()
	<-ended
	return all, leapt, err
}

// leap goes on to after the last mark that is over, and tells whether there was one.
func (m *Meetings) leap(ctx context.Context, gather gathering) (leapt bool) {
	for _, apart := range []int{far, near} {
		for mark := (m.next/apart + 1) * apart; ; mark += apart {
			err := gather.ask(ctx, mark)
			if err != nil && !errors.Is(err, peer.ErrSumOver) {
				break
			}
			if m.next, leapt = mark+1, true; err == nil { // all that are here have asked: nobody is further on
				return true
			}
		}
	}
	return leapt
}

// ask asks whether a meeting is over: then the error is peer.ErrSumOver. It is nil if all have asked, which is a meeting.
func (g gathering) ask(ctx context.Context, number int) error {
	within, cancel := context.WithTimeout(ctx, probe)
	defer cancel()
	_, err := g(within, number, nil)
	return err
}

// held notes a meeting, and reads what was said. Members remember a sum longer that they ask for, so they ask for marks.
func (m *Meetings) held(ctx context.Context, gather gathering, number int, all [][]byte) (blocks [][]byte, err error) {
	for _, said := range all {
		been, n := binary.Uvarint(said)
		if n <= 0 {
			continue // of one that only asks
		}
		if blocks = append(blocks, said[n:]); m.been > 0 && been > m.been {
			err = fmt.Errorf("meeting %d: %w", number, ErrMissed)
		}
	}
	before := (int(m.been) - 1) / far
	m.been = uint64(number) + 1
	for mark := 0; mark <= number && number/far != before; mark += far {
		_ = gather.ask(ctx, mark)
	}
	return blocks, err
}

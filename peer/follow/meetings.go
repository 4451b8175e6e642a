package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// Flock is the members that follow data together: a peer.Node or peer.Peer.
type Flock interface {
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
}

const (
	// meetEvery is the least time between two meetings.
	meetEvery = time.Second
	// chapter is after how many meetings a mark is set. A sum is remembered by members for some thousands of later ones,
	// and each that is asked for is remembered anew: so a newcomer finds the last mark, whenever it comes, and from
	// there the next meeting. Some 3,000 marks can be kept: a month of meetings.
	chapter = 1024
	// probe is how long a newcomer waits for an answer about a mark.
	probe = 2 * time.Second
)

// meetings are the meetings of the members, numbered. It is for one goroutine.
type meetings struct {
	flock   Flock
	name    string
	next    int  // number of the next
	found   bool // whether the flock is past the last mark
	alone   bool // at the last meeting
	decided func(all []Report) Decision
}

func (m *meetings) called(number int) string {
	return fmt.Sprintf("%s/%d/%d", m.name, number/chapter, number%chapter)
}

// meet takes part in the next meeting, and returns what all decide. Without the others it decides alone.
func (m *meetings) meet(ctx context.Context, own Report) (Decision, error) {
	all, err := m.gather(ctx, own.Encode())
	if err != nil {
		return m.decided([]Report{own}), fmt.Errorf("meeting %d of the members: %w: this one decides alone", m.next-1, err)
	}
	var reports []Report
	for _, block := range all {
		if r, fault := DecodeReport(block); fault == nil {
			reports = append(reports, r)
		} else {
			err = fmt.Errorf("a member is left out: %w", fault)
		}
	}
	return m.decided(reports), err
}

// gather finds the meeting that the flock is at, and takes part.
func (m *meetings) gather(ctx context.Context, block []byte) ([][]byte, error) {
	for {
		marks := !m.found && m.next%chapter == 0
		within, cancel := ctx, context.CancelFunc(func() {})
		if marks && m.next > 0 || m.alone {
			within, cancel = context.WithTimeout(ctx, probe)
		}
		all, err := m.flock.Gather(within, m.called(m.next), block)
		late := within.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			m.found, m.alone = true, len(all) == 1
			m.next++
			m.remind(ctx, m.next-1)
			return all, nil
		case errors.Is(err, peer.ErrSumOver) && marks:
			m.next += chapter
		case errors.Is(err, peer.ErrSumOver):
			m.next++
		case late && m.alone: // others have come, who meet elsewhere
			m.found, m.alone, m.next = false, false, 0
		case late: // the chapter has not begun: the flock is in the one before
			m.found, m.next = true, m.next-chapter+1
		default:
			m.next++
			return nil, err
		}
	}
}

// remind has this member remember all marks, at each new one.
func (m *meetings) remind(ctx context.Context, number int) {
	for mark := number - chapter; number%chapter == 0 && mark >= 0; mark -= chapter {
		within, cancel := context.WithTimeout(ctx, probe) // it is over, so nobody waits
		_, _ = m.flock.Gather(within, m.called(mark), nil)
		cancel()
	}
}

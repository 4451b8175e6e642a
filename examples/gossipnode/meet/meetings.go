package meet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// Flock is the members that meet.
type Flock interface {
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
}

const (
	// chapter is after how many meetings a mark is set. A sum is remembered for some thousands of later ones, and anew by who
	// asks for it: as all ask for the marks at each new one, a newcomer finds the last, and from there the next meeting.
	chapter = 1024
	// probe is how long a newcomer waits for an answer about a mark.
	probe = 2 * time.Second
)

// Meetings are what members bring to each other, one time after the other. The zero value is ready.
type Meetings struct {
	held  int
	found bool // the last mark
	been  bool // at one
}

// Gather is the next meeting of a kind: the blocks of all. Who comes later finds that of the others by trying.
func (m *Meetings) Gather(ctx context.Context, flock Flock, kind string, block []byte) (all [][]byte, err error) {
	try := func(number int, block []byte, bounded bool) (all [][]byte, late bool, err error) {
		within, cancel := ctx, context.CancelFunc(func() {})
		if bounded {
			within, cancel = context.WithTimeout(ctx, probe)
		}
		defer cancel()
		all, err = flock.Gather(within, fmt.Sprint(kind, "/", number), block)
		alone := err == nil && len(all) == 1 || err != nil && !errors.Is(err, peer.ErrSumOver)
		return all, bounded && alone && ctx.Err() == nil, err
	}
	for {
		marks, late := !m.found && m.held%chapter == 0, false
		all, late, err = try(m.held, block, marks && m.held > 0)
		if late { // the chapter has not begun: the others are in the one before
			m.found, m.held = true, m.held-chapter+1
			continue
		}
		if m.held++; m.been || !errors.Is(err, peer.ErrSumOver) {
			break
		}
		if marks {
			m.held += chapter - 1
		}
	}
	if err != nil {
		return nil, fmt.Errorf("meeting %d of the members with %s: %w", m.held-1, kind, err)
	}
	m.found, m.been = true, true
	for mark := m.held - 1 - chapter; (m.held-1)%chapter == 0 && mark >= 0; mark -= chapter {
		_, _, _ = try(mark, nil, true) // it is over, so nobody waits
	}
	return all, nil
}

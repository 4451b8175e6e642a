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

// Gather is the next meeting of a kind: the blocks of all. Who comes later finds that of the others by trying: mark after mark
// up to the last that has been, and from there meeting after meeting.
func (m *Meetings) Gather(ctx context.Context, flock Flock, kind string, block []byte) (all [][]byte, err error) {
	name := func(number int) string { return fmt.Sprint(kind, "/", number) }
	for {
		mark := !m.found && m.held%chapter == 0
		if mark && m.held > 0 {
			var begun bool
			if all, begun, err = probed(ctx, flock, name(m.held), block); !begun { // the others are in the chapter before
				m.found, m.held = true, m.held-chapter+1
				continue
			}
		} else {
			all, err = flock.Gather(ctx, name(m.held), block)
		}
		if m.held++; m.been || !errors.Is(err, peer.ErrSumOver) {
			break
		}
		if mark {
			m.held += chapter - 1
		}
	}
	if err != nil {
		return nil, fmt.Errorf("meeting %d of the members with %s: %w", m.held-1, kind, err)
	}
	m.found, m.been = true, true
	for mark := m.held - 1 - chapter; (m.held-1)%chapter == 0 && mark >= 0; mark -= chapter {
		_, _, _ = probed(ctx, flock, name(mark), nil) // it is over, so nobody waits
	}
	return all, nil
}

// probed is a meeting for which others are waited for no longer than probe. It has not begun if nobody else is there.
func probed(ctx context.Context, flock Flock, name string, block []byte) (all [][]byte, begun bool, err error) {
	within, cancel := context.WithTimeout(ctx, probe)
	defer cancel()
	all, err = flock.Gather(within, name, block)
	alone := err == nil && len(all) == 1 || err != nil && !errors.Is(err, peer.ErrSumOver)
	return all, !alone || ctx.Err() != nil, err
}

package meet

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/peer"
)

// Flock is the members that meet.
type Flock interface {
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
}

// Meetings are what members bring to each other, one time after the other. The zero value is ready.
type Meetings struct {
	held int
	been bool // at one
}

// Gather is the next meeting of a kind: the blocks of all. Who comes later finds that of the others by trying.
func (m *Meetings) Gather(ctx context.Context, flock Flock, kind string, block []byte) (all [][]byte, err error) {
	for {
		all, err = flock.Gather(ctx, fmt.Sprint(kind, "/", m.held), block)
		if m.held++; m.been || !errors.Is(err, peer.ErrSumOver) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("meeting %d of the members with %s: %w", m.held-1, kind, err)
	}
	m.been = true
	return all, nil
}

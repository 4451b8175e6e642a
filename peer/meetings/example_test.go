package meetings_test

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/meetings"
)

// alone is a flock of one; a program has a peer.Node or peer.Peer.
type alone struct{}

func (alone) Gather(_ context.Context, _ string, data []byte) ([][]byte, error) {
	return [][]byte{data}, nil
}

// Members tell each other something, time after time; one with ErrMissed goes on with what it hears now.
func ExampleMeetings_Gather() {
	var m meetings.Meetings
	for i := range 2 {
		all, err := m.Gather(context.Background(), alone{}, "counts", fmt.Append(nil, 10*i))
		fmt.Printf("%s %v\n", all, err)
	}
	// Output:
	// [0] <nil>
	// [10] <nil>
}

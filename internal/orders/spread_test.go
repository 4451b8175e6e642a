package orders

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// topicless is a transport that has no topics.
type topicless struct{ transport.Transport }

func (topicless) Topic(string, func(transport.PeerID) bool, transport.TopicHandler) (transport.Topic, error) {
	return nil, transport.ErrNoTopics
}

// What one has been told spreads by the topic, and without one by members that are asked; who obeys
// nobody and tells nothing takes no part in it.
func TestWhatIsSaidSpreads(t *testing.T) {
	for _, topic := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New(memnet.Config{})
			operator, names := place(t, n, "operator"), []string{"a", "b", "c", "apart"}
			const apart = 3
			var all []*subject
			for i, name := range names {
				config := control.Config{Operator: operator.Self(), Digests: time.Minute}
				if i == apart {
					config = control.Config{}
				}
				all = append(all, obeying(t, n, name, config))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for i, s := range all {
				for j, other := range all[:apart] {
					if j == i {
						continue
					}
					if _, err := s.at.Connect(t.Context(), "mem:"+names[j]); err != nil {
						t.Fatal(err)
					}
					s.flock.members = append(s.flock.members, transport.Record{Peer: other.at.Self()})
				}
				if !topic {
					s.requests.Transport = topicless{s.at}
				}
				s.Begin()
				running.Go(func() { s.Run(ctx, s) })
			}
			voice := control.Operator{Transport: operator, Run: run}
			if _, err := voice.Send(t.Context(), all[0].at.Self(), control.Command{Kind: control.Pause}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(map[bool]time.Duration{true: time.Second, false: apart * askEvery}[topic])
			for i, s := range all {
				if paused := s.Held() != nil; paused != (i != apart) {
					t.Errorf("topic %t: %s is paused: %t", topic, names[i], paused)
				}
			}
			time.Sleep(2 * time.Minute)
			for i, s := range all {
				digests, neighbours := 1, 0
				if topic && i != apart {
					digests, neighbours = 3, 2
				}
				if len(s.told()) != digests || s.Stats().Neighbours != neighbours {
					t.Errorf("topic %t: %s has %d digests and %d neighbours, want %d and %d", topic, names[i], len(s.told()), s.Stats().Neighbours, digests, neighbours)
				}
			}
			cancel()
			running.Wait()
		})
	}
}

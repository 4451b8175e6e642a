package peer

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/tasks"
)

// mute is a machine that answers nothing.
type mute struct{ collective.Machine }

func (mute) Decide(_ time.Duration, _ collective.Event, actions []collective.Action) []collective.Action {
	return actions
}

// TestRequestsThatNobodyAnswersAreRefused: whatever a machine does not know, who asks for it is told
// no, and by the number of an exchange under way nobody gets another.
func TestRequestsThatNobodyAnswersAreRefused(t *testing.T) {
	for _, kind := range []averaging.EventKind{averaging.Proposed, collective.Offered} {
		event := collective.Event{Event: averaging.Event{Kind: kind, Peer: "partner", Exchange: 1, Inbound: true}}
		d := &driver{machine: mute{}, life: tasks.NewLife(), running: make(map[conversations.Key]*conversations.Ongoing)}
		for _, want := range []averaging.Reason{averaging.Round, averaging.Busy} {
			verdict := make(chan averaging.Action, 1)
			d.events = []question{{event: event, proposed: new(conversations.Ongoing), verdict: verdict}}
			d.handle()
			select {
			case got := <-verdict:
				if got.Kind != averaging.Refuse || got.Reason != want {
					t.Errorf("%v is answered by %+v, want a refusal for %v", kind, got, want)
				}
			default:
				t.Errorf("%v is not answered", kind)
			}
			if want == averaging.Round && len(d.running) != 0 {
				t.Errorf("%v: %d exchanges are still under way", kind, len(d.running))
			}
			d.running[conversations.KeyOf(event)] = nil
		}
	}
}

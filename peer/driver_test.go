package peer

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/conversations"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
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

// plain is an optimizer without a Reset.
type plain struct{ optim.Optimizer }

func (plain) Delta(grad, x tensor.Vector, rate float64) {}

// TestOptimizerThatCannotForget: of one without a Reset it is said once that models stay apart when
// somebody comes, and of one that has it nothing.
func TestOptimizerThatCannotForget(t *testing.T) {
	for optimizer, want := range map[optim.Optimizer]int{plain{}: 1, &optim.SGD{}: 0} {
		core, logged := observer.New(zap.WarnLevel)
		u := updates{optimizer: optimizer, log: zap.New(core)}
		u.warn()
		u.warn()
		if said := logged.FilterMessageSnippet("no method Reset").Len(); said != want {
			t.Errorf("of %T it is said %d times, want %d", optimizer, said, want)
		}
	}
}

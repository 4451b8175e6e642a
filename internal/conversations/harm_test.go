package conversations

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/tensor"
)

// judged is a side whose steps a test makes up.
type judged struct {
	*side
	random   *rand.Rand
	exchange averaging.ExchangeID
}

// meets has a partner, whose model is so far away, exchange with the side, whose next steps
// go on the way that the exchange has moved it, or back.
func (j *judged) meets(partner *side, far float32, back bool) {
	j.t.Helper()
	before := j.model()
	shown := slices.Clone(before)
	for i := range shown {
		shown[i] += far * float32(j.random.NormFloat64())
	}
	if err := partner.Host.Replica.RestoreShared(shown); err != nil {
		j.t.Fatal(err)
	}
	j.exchange++
	partner.propose(j.side, j.exchange)
	pass(time.Second)
	way := j.model()
	for i := range way {
		if way[i] -= before[i]; back {
			way[i] = -way[i]
		}
	}
	length := tensor.Norm2(way)
	for range 4 {
		step := slices.Clone(way)
		for i := range step {
			step[i] += float32(length / 30 * j.random.NormFloat64())
		}
		j.Host.Replica.Judgement().ByStep(nil, step)
	}
}

// TestWhoDoesHarmIsNamedAndKeptAway: a partner whose exchanges go against the steps of the side
// that was asked is named once in its log, with what to do, and is kept away when that goes on and
// is grave. Nothing is said of another partner.
func TestWhoDoesHarmIsNamedAndKeptAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		honest := r.side("c", setting{}.withDefaults(), 0)
		honest.knows(r.b)
		r.b.knows(r.a, honest)
		core, logged := observer.New(zapcore.WarnLevel)
		r.b.Log = zap.New(core)
		b := &judged{side: r.b, random: rand.New(rand.NewPCG(1, 0))}
		told := func(what string) map[string]any {
			lines := logged.FilterMessageSnippet(what).All()
			if len(lines) == 0 {
				return nil
			}
			if len(lines) > 1 {
				t.Fatalf("it is said again: %v", lines)
			}
			return lines[0].ContextMap()
		}
		n := 0
		for ; b.Quarantined(r.a.at.Self()) == 0; n++ {
			if n == 40 {
				t.Fatalf("the partner is not kept away after %d exchanges: %+v", n, b.Host.Replica.Judgement().Harms(2))
			}
			if n < 4 && told("moves this model less") != nil {
				t.Errorf("it is named after %d exchanges", n)
			}
			b.meets(honest, 0.005, false)
			b.meets(r.a, 1, true)
		}
		for _, named := range []map[string]any{told("moves this model less"), told("do harm beyond doubt, and it is kept away")} {
			if harm, _ := named["harm"].(float64); named["peer"] != string(r.a.at.Self()) || !(harm > 1) || named["exchanges"] == uint64(0) || named["remedy"] != harmRemedy {
				t.Errorf("it says %v", named)
			}
		}
		if trust, _ := told("moves this model less")["trust"].(float64); !(trust > 0 && trust <= 0.5) {
			t.Errorf("it is named with a trust of %v", told("moves this model less")["trust"])
		}
		if logged.Len() != 2 || b.Counters.Counts().Failed["protocol"] != 0 {
			t.Errorf("the log has %v", logged.All())
		}
		if last := b.loop.last(); last.Kind != averaging.Quarantined || last.Peer != r.a.at.Self() {
			t.Errorf("the machine heard %v last", last)
		}
	})
}

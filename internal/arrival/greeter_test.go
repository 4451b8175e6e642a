package arrival_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestRefusalsNameTheReasonOnBothSides: another model bars one at once, with what to do and both builds; who is only
// starting, and answers for no run yet, is asked again.
func TestRefusalsNameTheReasonOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host := arrive(t, network, "host", 3)
		other := arrive(t, network, "other", 4, "mem:host")
		other.Arrival.Begin()
		time.Sleep(time.Second)
		if err := other.Fault(); err != nil {
			t.Fatalf("barred by a peer that is only starting: %v", err)
		}
		host.serve(t)
		err := other.Wait(t.Context())
		refused, _ := errors.AsType[*transport.RefusedError](err)
		if !errors.Is(err, transport.ErrLayout) || refused == nil || refused.Peer != host.transport.Self() || refused.Remedy != wire.ReasonLayout.Remedy() {
			t.Fatalf("%v", err)
		}
		if !strings.Contains(err.Error(), "the build here is the build of host; your build is the build of other") {
			t.Errorf("%q names not both builds", err)
		}
		synctest.Wait()
		if declined := host.tally.Counts().Declined; len(declined) != 1 || declined[wire.ReasonLayout.String()] != 1 {
			t.Errorf("the host has declined %v", declined)
		}
		for logs, snippet := range map[*comer]string{host: "refused a peer", other: "cannot take part"} {
			if logs.logged.FilterMessageSnippet(snippet).Len() != 1 {
				t.Errorf("logged %v, want one line that says %q", logs.logged.All(), snippet)
			}
		}
	})
}

// TestWhoIsGone: who answers a hello is there, be it with a refusal; whose process takes no part any more, or is frozen,
// is not. A question that is broken off tells nothing.
func TestWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		asks := arrive(t, network, "asks", 3)
		for name, c := range map[string]struct {
			values  int
			prepare func(*comer)
			gone    bool
		}{
			"there":   {3, func(c *comer) { c.serve(t) }, false},
			"another": {4, func(c *comer) { c.serve(t) }, false},
			"leaving": {3, func(c *comer) { c.Arrival.Close(); c.serve(t) }, false}, // it says so
			"left":    {3, func(*comer) {}, true},
			"crashed": {3, func(c *comer) { c.serve(t); network.Crash(c.transport.Self()) }, true},
			"frozen":  {3, func(c *comer) { c.serve(t); network.StallAfter(c.transport.Self(), asks.transport.Self(), 0) }, true},
		} {
			member := arrive(t, network, name, c.values)
			c.prepare(member)
			began := time.Now()
			if gone := asks.Gone(t.Context(), member.transport.Self()); gone != c.gone || time.Since(began) > 2*time.Second {
				t.Errorf("%s: gone is %t, after %s", name, gone, time.Since(began))
			}
			ended, end := context.WithCancel(t.Context())
			if end(); name == "frozen" && asks.Gone(ended, member.transport.Self()) {
				t.Error("gone, as nobody waited for its answer")
			}
			network.Release(member.transport.Self(), asks.transport.Self())
		}
	})
}

// TestARunDescribesItself: who joins with other data is told before its first step, by each difference; who differs in
// what is its own to choose, or says nothing, takes part, and passes on what the founder has signed, also to one whose
// model it refuses.
func TestARunDescribesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		come := func(name, data, rate, batch string, values int, join ...string) *comer {
			var says []description.Field
			if data != "" {
				says = []description.Field{{Name: "data", Value: data}, {Name: "rate", Value: rate}, {Name: "batch", Value: batch, Local: true}}
			}
			c := arriveAs(t, network, name, values, says, join...)
			c.serve(t)
			c.Arrival.Begin()
			time.Sleep(time.Second)
			return c
		}
		founder := come("founder", "mnist", "0.1", "32", 3)
		silent := come("silent", "", "", "", 3, "mem:founder")
		other := come("other", "fashion", "0.5", "32", 3, "mem:silent")
		mismatch, ok := errors.AsType[*description.MismatchError](other.Fault())
		if !ok || mismatch.Peer != silent.transport.Self() || len(mismatch.Differences) != 2 || other.visits.Load() != 0 {
			t.Fatalf("with other data: %v", other.Fault())
		}
		if d := mismatch.Differences[0]; d != (description.Difference{Field: "data", Here: "fashion", There: "mnist"}) {
			t.Errorf("%+v", d)
		}
		smaller := come("smaller", "mnist", "0.1", "8", 3, "mem:silent")
		if !smaller.Reached() || smaller.Fault() != nil || smaller.logged.FilterMessageSnippet("set up otherwise").Len() != 1 {
			t.Errorf("with batches of its own: %v; logged %v", smaller.Fault(), smaller.logged.All())
		}
		_, said, err := come("asks", "", "", "", 4).Greeter.Ask(t.Context(), smaller.transport.Self())
		d, opened := said.Open(smaller.transport, run)
		if rate, _ := d.Value("rate"); !errors.Is(err, transport.ErrLayout) || opened != nil || rate != "0.1" || said.Signer != founder.transport.Self() {
			t.Errorf("it passes on %+v, %v; %v", d, opened, err)
		}
	})
}

// TestADescriptionOutlivesItsFounder: a member that comes back passes on what the founder has signed, unless it was set up
// otherwise since, or what it has kept is not what was signed.
func TestADescriptionOutlivesItsFounder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		kept := described(t, network, "founder", "0.1").Described.Held()
		forged := kept
		forged.Text = append([]byte(" "), kept.Text...)
		for name, c := range map[string]struct {
			rate    string
			kept    description.Signed
			founder bool
		}{"same": {"0.1", kept, true}, "otherwise": {"0.5", kept, false}, "forged": {"0.1", forged, false}, "none": {"0.1", description.Signed{}, false}} {
			again := described(t, network, name, c.rate)
			again.Described.Recall(c.kept)
			held := again.Described.Held()
			if d, err := held.Open(again.transport, run); err != nil || (held.Signer == kept.Signer) != c.founder {
				t.Errorf("%s: it passes on %+v of %s, %v", name, d, held.Signer, err)
			} else if rate, _ := d.Value("rate"); rate != c.rate {
				t.Errorf("%s: it passes on the rate %s", name, rate)
			}
		}
	})
}

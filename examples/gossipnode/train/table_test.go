package train

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/table"
)

// gathered is a flock whose members bring what they are known to.
type gathered struct {
	table.Alone
	all [][]byte
}

func (g gathered) Gather(context.Context, string, []byte) ([][]byte, error) { return g.all, nil }

// A peer that joins others knows some more of them when it trains, itself and what is none left
// out; who begins the run joins nobody.
func TestSpareAddresses(t *testing.T) {
	g := gathered{all: [][]byte{[]byte(`["first"]`), []byte(`["own","own2"]`), []byte(`?`), []byte(`[]`)}}
	for i := range 9 {
		g.all = append(g.all, fmt.Appendf(nil, `["other%d","x"]`, i))
	}
	for _, c := range []struct{ join, want []string }{
		{nil, nil},
		{[]string{"first"}, []string{"first", "other0", "other1", "other2", "other3"}},
	} {
		p := &preparing{Settings: &settings.Settings{Network: settings.Network{Join: c.join}}, announced: []string{"own", "own2"}}
		if err := p.spare(t.Context(), g); err != nil || !slices.Equal(p.Join, c.want) {
			t.Errorf("%q: %q, %v", c.join, p.Join, err)
		}
	}
}

// The port that the system has chosen for the sums is that of the training, too.
func TestPinned(t *testing.T) {
	got := []string{"/ip4/127.0.0.1/tcp/4711/p2p/12D3KooW"}
	for _, c := range []struct{ listen, want []string }{
		{[]string{"127.0.0.1:0"}, []string{"127.0.0.1:4711"}},
		{[]string{"[::1]:0"}, []string{"[::1]:4711"}},
		{[]string{"0.0.0.0:4001"}, []string{"0.0.0.0:4001"}},
		{[]string{"a:0", "b:0"}, []string{"a:0", "b:0"}},
	} {
		if is := pinned(c.listen, got); !slices.Equal(is, c.want) {
			t.Errorf("%q: %q", c.listen, is)
		}
	}
}

// Who has not heard yet that this peer has left the preparing asks for that: it is no news while
// it trains, and all else is.
func TestAskingForThePreparingIsExpected(t *testing.T) {
	const refused = "refused a stream: this process takes no part in that run"
	s := &settings.Settings{Network: settings.Network{Run: "digits"}}
	for _, c := range []struct {
		announced []string
		want      int
	}{{[]string{"address"}, 3}, {nil, 4}} {
		core, logs := observer.New(zap.WarnLevel)
		log := whileTraining(zap.New(core), s, c.announced).With(zap.Int("peer", 1))
		log.Warn(refused, zap.String("run", s.PreparingRun()))
		log.Warn(refused, zap.String("run", "another"))
		log.Warn("refused a stream: this peer has too many open")
		log.Warn("something else", zap.String("run", s.PreparingRun()))
		log.Info(refused, zap.String("run", "below the level"))
		if n := logs.FilterField(zap.Int("peer", 1)).Len(); n != c.want {
			t.Errorf("announced %v: %d lines, want %d", c.announced, n, c.want)
		}
	}
}

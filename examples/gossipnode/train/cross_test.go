package train

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/tensor"
)

// gathering is a flock in which member i brings something else than it should in a round, if lies says so.
type gathering struct {
	mu     sync.Mutex
	full   *sync.Cond
	blocks map[string][][]byte
	n      int
	lies   map[string][]byte
}

type seat struct {
	*gathering
	at int
}

func (s seat) Gather(_ context.Context, name string, data []byte) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocks[name] == nil {
		s.blocks[name] = make([][]byte, s.n)
	}
	if lie, lies := s.lies[name]; lies && s.at == 1 {
		data = lie
	}
	s.blocks[name][s.at] = data
	s.full.Broadcast()
	whole := func() bool {
		for _, b := range s.blocks[name] {
			if b == nil {
				return false
			}
		}
		return true
	}
	for !whole() {
		s.full.Wait()
	}
	return s.blocks[name], nil
}

func crossAll(t *testing.T, lies map[string][]byte) []*result.Cross {
	t.Helper()
	g := &gathering{blocks: map[string][][]byte{}, n: 3, lies: lies}
	g.full = sync.NewCond(&g.mu)
	tables := make([]*result.Cross, g.n)
	var all sync.WaitGroup
	for i := range g.n {
		all.Go(func() {
			var err error
			tables[i], err = cross(t.Context(), seat{g, i}, string(rune('a'+i)), tensor.Vector{float32(i), 1}, func(x tensor.Vector) float64 {
				return float64(x[0]) + float64(i)/10 // of model x on the data of i
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return tables
}

// TestEveryModelOnEveryMembersData: all have the same table, in which row i and column k are model k on the data of i.
func TestEveryModelOnEveryMembersData(t *testing.T) {
	for _, table := range crossAll(t, nil) {
		for i, row := range table.Accuracy {
			for k, a := range row {
				if math.Abs(float64(a)-float64(k)-float64(i)/10) > 1e-9 || table.Peers[i] != string(rune('a'+i)) {
					t.Errorf("model %d on the data of %s: %v", k, table.Peers[i], a)
				}
			}
		}
		if text := table.String(); strings.Count(text, "\n") != 5 || !strings.Contains(text, "210.00") {
			t.Errorf("in words:\n%s", text)
		}
	}
}

// TestWhatAMemberBringsToTheTable is checked: nobody else's figures suffer.
func TestWhatAMemberBringsToTheTable(t *testing.T) {
	for name, lies := range map[string]map[string][]byte{
		"no model":     {"cross-evaluate/models": {}},
		"a long model": {"cross-evaluate/models": make([]byte, 12)},
		"NaN":          {"cross-evaluate/models": {0, 0, 0xc0, 0x7f, 0, 0, 0, 0}},
		"no row":       {"cross-evaluate/rows": []byte("rubbish")},
		"a short row":  {"cross-evaluate/rows": []byte(`{"name":"\u001b[2J","accuracy":[1]}`)},
	} {
		for _, table := range crossAll(t, lies) {
			for i := range 3 {
				for k := range 3 {
					lost := i == 1 && lies["cross-evaluate/rows"] != nil || k == 1 && lies["cross-evaluate/models"] != nil
					if math.IsNaN(float64(table.Accuracy[i][k])) != lost {
						t.Errorf("%s: model %d on the data of %d: %v", name, k, i, table.Accuracy[i][k])
					}
				}
			}
		}
	}
}

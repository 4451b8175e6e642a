package overlay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/dashboard"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// picture is who is linked with whom, as ids, and each member's role.
type picture struct {
	Members []struct{ ID, Name, Role string }
	Links   [][2]int
	Loads   []linkLoad `json:"load_links"`
}

func (p picture) told() (all []string) {
	for _, m := range p.Members {
		all = append(all, m.ID+" is "+m.Role)
	}
	for _, l := range p.Links {
		all = append(all, p.Members[l[0]].ID+" to "+p.Members[l[1]].ID)
	}
	slices.Sort(all)
	return all
}

// TestALivingRunIsDrawn: what topology draws of a run with a key, which says that it is a tree, is what the dashboard of a member shows, a member that does
// not train included; who has not the key sees nothing of it.
func TestALivingRunIsDrawn(t *testing.T) {
	folder := t.TempDir()
	keyed := filepath.Join(folder, "run.key")
	key := []byte(strings.Repeat("ab", 32))
	if err := os.WriteFile(keyed, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const trainers = 4
	var join []string
	var nodes []*peer.Node
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range trainers + 1 {
		network := peer.Network{
			Description: []description.Field{{Name: "topology", Value: "tree"}},
			Run:         "murmuration", Join: join, Listen: []string{"127.0.0.1:0"}, Admission: peer.Admission{RunKey: key},
			Control: control.Config{Name: fmt.Sprintf("<p%d>", i), Digests: control.DigestSpacing},
		}
		node, err := peer.Join(t.Context(), network)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.Close() })
		if join = node.JoinAddresses(); i < trainers {
			if _, err := node.Train(t.Context(), peer.Training{Params: tensor.NewParams(layout), Exchange: peer.Exchange{Topology: topology.Tree}}); err != nil {
				t.Fatal(err)
			}
		}
		nodes = append(nodes, node)
	}
	clitest.Eventually(t, "all see all, with their roles and names", func() bool {
		return !slices.ContainsFunc(nodes, func(n *peer.Node) bool {
			members := n.Members()
			return len(members) != trainers+1 || slices.ContainsFunc(members, func(m control.Member) bool {
				return m.Name == "" || (m.State == control.Idle) != (m.Role == 0)
			})
		})
	})
	d, err := dashboard.Listen(dashboard.Config{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Serve(dashboard.NewBoard(nodes[0], dashboard.About{Self: string(nodes[0].Self()), Topology: topology.Tree}, nil, nil, zap.NewNop()), zap.NewNop())
	shown := func() (p picture) {
		answer, err := http.Get(d.URL() + "api/state")
		var all struct{ State picture }
		if err == nil {
			err = cmp.Or(json.NewDecoder(answer.Body).Decode(&all), answer.Body.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return all.State
	}
	drawing := filepath.Join(folder, "run.svg")
	address := nodes[trainers].JoinAddresses()[0]
	var drawn picture
	clitest.Eventually(t, "both are alike", func() bool { // roles may change while the last one comes
		code, out, stderr := try("topology", "--join", address, "--run-key", keyed, "--json", "--svg", drawing)
		if code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		drawn = picture{}
		if err := json.Unmarshal([]byte(out), &drawn); err != nil {
			t.Fatal(err)
		}
		return slices.Equal(drawn.told(), shown().told())
	})
	roles := map[string]int{}
	for _, m := range drawn.Members {
		roles[m.Role]++
	}
	if roles["active"] == 0 || roles["passive"] == 0 || roles["undecided"] != 1 || len(drawn.Links) < trainers-1 {
		t.Errorf("%+v", drawn)
	}
	svg, err := os.ReadFile(drawing)
	if err != nil || strings.Count(string(svg), ">&lt;p") != trainers+len(drawn.Links) || len(drawn.Loads) != len(drawn.Links) || strings.Contains(string(svg), "<p0>") || strings.Contains(string(svg), string(nodes[trainers].Self())) {
		t.Errorf("%v, %s", err, svg)
	}
	_, out, _ := try("topology", "--join", address, "--run-key", keyed)
	if !strings.Contains(out, "  <p0>") {
		t.Error(out)
	}
	for _, words := range [][]string{{}, {"--peers", "9", "--run-key", keyed}, {"--active", "0.5", "--run-key", keyed}} {
		os.Remove(drawing)
		code, out, stderr := try(append([]string{"topology", "--join", address, "--json", "--svg", drawing}, words...)...)
		if _, err := os.Stat(drawing); code == cli.ExitDone || out != "" || err == nil || strings.Contains(stderr, "<p") {
			t.Errorf("%q: exit code %d, %q, %s", words, code, out, stderr)
		}
	}
}

// TestALivingRunOfOne has no links to draw.
func TestALivingRunOfOne(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	node, err := peer.Join(t.Context(), peer.Network{Run: "murmuration", Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	if _, err := node.Train(t.Context(), peer.Training{Params: tensor.NewParams(layout)}); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := try("topology", "--join", node.JoinAddresses()[0]); code != cli.ExitFailed || !strings.Contains(stderr, "1 member of run murmuration: want 2 to 1000 that train") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
}

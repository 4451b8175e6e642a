package train

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// ids are ids of peers, the last of which is none.
func ids(t *testing.T, n int) (all []string) {
	for range n {
		tr, err := p2pnet.New(p2pnet.Config{Listen: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(tr.Self()))
		tr.Close()
	}
	return append(all, "nobody")
}

// TestListsAreAmended: whatever a list and the changes, it then has the ids that it is to have, none that it is not to
// have, each once if it was so before, and every other line as it was; a second time nothing changes.
func TestListsAreAmended(t *testing.T) {
	all := ids(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		var text string
		before := map[string]bool{}
		for _, id := range rapid.Permutation(all[:4]).Draw(t, "listed")[:rapid.IntRange(0, 4).Draw(t, "n")] {
			text += rapid.SampledFrom([]string{"", "# ours\n", "\n"}).Draw(t, "between") + id + rapid.SampledFrom([]string{"\n", " # disk 3\n", "\r\n"}).Draw(t, "end")
			before[id] = true
		}
		if rapid.Bool().Draw(t, "cut") {
			text = strings.TrimSuffix(text, "\n")
		}
		var changes []control.Change
		want := map[string]bool{}
		for _, id := range rapid.Permutation(all).Draw(t, "said")[:rapid.IntRange(0, 4).Draw(t, "changes")] {
			n := control.Change{Peer: transport.PeerID(id), Do: rapid.SampledFrom([]control.Deed{control.Admit, control.Expel}).Draw(t, "do")}
			changes = append(changes, n)
			want[id] = n.Do == control.Admit && id != "nobody"
		}
		for id := range before {
			if _, said := want[id]; !said {
				want[id] = true
			}
		}
		got := amended(text, changes)
		for _, id := range all {
			times := 0
			for line := range strings.Lines(got) {
				if id == strings.TrimSpace(strings.SplitN(line, "#", 2)[0]) {
					times++
				}
			}
			if times != map[bool]int{true: 1}[want[id]] {
				t.Fatalf("%q and %v make %q, which has %s %d times", text, changes, got, id, times)
			}
		}
		for line := range strings.Lines(text) {
			id := strings.TrimSpace(strings.SplitN(line, "#", 2)[0])
			if stays := id == "" || want[id]; stays && !slices.Contains(slices.Collect(strings.Lines(got)), strings.TrimSuffix(line, "\n")+"\n") {
				t.Fatalf("%q and %v make %q, without %q", text, changes, got, line)
			}
		}
		if again := amended(got, changes); again != got {
			t.Fatalf("again it is %q", again)
		}
	})
}

// TestTheOperatorsWordIsCarriedOut: in the file of the list, whose mode stays, and by the end of the peer's work.
func TestTheOperatorsWordIsCarriedOut(t *testing.T) {
	all := ids(t, 1)
	path := filepath.Join(t.TempDir(), "allow")
	if err := os.WriteFile(path, []byte("# ours\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	var told []string
	to := Observer{Log: zap.NewNop(), Tell: func(r watch.Report) { told = append(told, r.Said) }}
	ctx, changed := obedient(t.Context(), path, to, newDuties(settings.Settings{}, to.Log))
	changed("", []control.Change{{Peer: transport.PeerID(all[0]), Do: control.Admit}})
	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || string(text) != "# ours\n"+all[0]+" # admitted by the operator\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, mode %v, %v", text, info.Mode(), err)
	}
	if ctx.Err() != nil || drained(ctx) || unlessDrained(ctx, ErrNothingDone) != ErrNothingDone {
		t.Error("a change of the list ends the work")
	}
	changed("new disks", []control.Change{{Peer: "self", Do: control.Drain}})
	if !drained(ctx) || ctx.Err() == nil || unlessDrained(ctx, ErrNothingDone) != nil || unlessDrained(ctx, os.ErrClosed) == nil || !slices.Equal(told, []string{"leaving, as the operator asks: new disks"}) {
		t.Errorf("%v, %q", context.Cause(ctx), told)
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
		t.Errorf("beside the list stand %q, %v", left, err)
	}
}

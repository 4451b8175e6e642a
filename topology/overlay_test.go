package topology

import (
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkOverlay checks every property that DESIGN promises of one overlay.
func checkOverlay(t reporter, o *Overlay) {
	t.Helper()
	v := o.View()
	links := places(o)
	joined := newMatrix(v.Len())
	for i, list := range links {
		if v.Len() >= 2 && len(list) == 0 {
			t.Fatalf("%v of %d is reached by nobody", v.At(i).ID, v.Len())
		}
		for _, j := range list {
			if v.At(i).Role == v.At(j).Role {
				t.Fatalf("%v is joined to %v, and both are %v", v.At(i).ID, v.At(j).ID, v.At(i).Role)
			}
			if joined.has(i, j) {
				t.Fatalf("%v is joined to %v twice", v.At(i).ID, v.At(j).ID)
			}
			joined.set(i, j)
		}
	}
	for i, list := range links {
		for _, j := range list {
			if !joined.has(j, i) {
				t.Fatalf("%v is joined to %v, but not the other way", v.At(i).ID, v.At(j).ID)
			}
		}
	}
	checkConnected(t, links)
	checkDegrees(t, o, links)
}

// checkNames compares what callers see, by id, with the links by place.
func checkNames(t reporter, o *Overlay) {
	t.Helper()
	for i, list := range places(o) {
		var want []PeerID
		for _, j := range list {
			want = append(want, o.View().At(j).ID)
		}
		id := o.View().At(i).ID
		if got := o.Neighbours(id); !slices.Equal(got, want) {
			t.Fatalf("%v has neighbours %v, want %v", id, got, want)
		}
	}
}

// matrix is a square matrix of bits.
type matrix struct {
	n    int
	bits []uint64
}

func newMatrix(n int) matrix       { return matrix{n: n, bits: make([]uint64, (n*n+63)/64)} }
func (m matrix) set(i, j int)      { m.bits[(i*m.n+j)/64] |= 1 << ((i*m.n + j) % 64) }
func (m matrix) has(i, j int) bool { return m.bits[(i*m.n+j)/64]>>((i*m.n+j)%64)&1 == 1 }

func checkConnected(t reporter, links [][]int) {
	t.Helper()
	if len(links) == 0 {
		return
	}
	seen := make([]bool, len(links))
	seen[0] = true
	queue := []int{0}
	for reached := 0; reached < len(queue); reached++ {
		for _, j := range links[queue[reached]] {
			if !seen[j] {
				seen[j] = true
				queue = append(queue, j)
			}
		}
	}
	if len(queue) != len(links) {
		t.Fatalf("%d of %d are connected", len(queue), len(links))
	}
}

// checkDegrees holds 2*ceil(log2 n)+1 in the larger class, and ceil(|L|/|S|)
// times that in the smaller one.
func checkDegrees(t reporter, o *Overlay, links [][]int) {
	t.Helper()
	v := o.View()
	n, l, s := v.Len(), max(v.Actives(), v.Passives()), min(v.Actives(), v.Passives())
	if n < 2 {
		return
	}
	limit := 2*bits.Len(uint(n-1)) + 1
	for i, list := range links {
		bound := limit
		if v.At(i).Role != o.meshes[0].largeRole {
			bound = (l + s - 1) / s * limit
		}
		if len(list) > bound {
			t.Fatalf("%v (%v of %d:%d) has degree %d, at most %d allowed", v.At(i).ID, v.At(i).Role, v.Actives(), v.Passives(), len(list), bound)
		}
	}
}

// Every size from 2 to 1,000 at every ratio that matters, small sizes both ways
// round, large ones with the actives in the majority at every other size.
func TestOverlayProperties(t *testing.T) {
	ratios := []struct{ active, of int }{{1, 2}, {1, 3}, {20, 64}, {10, 100}}
	for n := 2; n <= 1000; n++ {
		if testing.Short() && n > 130 && n%37 != 0 {
			continue
		}
		for i, r := range ratios {
			fewer := min(max(n*r.active/r.of, 1), n-1)
			if n <= 130 || (n+i)%2 == 0 {
				checkOverlay(t, overlayOf(t, fewer, n-fewer))
			}
			if n <= 130 || (n+i)%2 == 1 {
				checkOverlay(t, overlayOf(t, n-fewer, fewer))
			}
		}
	}
}

// The views that really arise: joiners only, sizes 1 to 1,000.
func TestOverlayOfNewcomers(t *testing.T) {
	members := peers(1000, Undecided)
	for n := 1; n <= 1000; n += 1 + n/50 {
		o := mustOverlay(t, members[:n])
		checkOverlay(t, o)
		checkNames(t, o)
	}
}

func TestOverlayUnderChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, _ := NewView(nil)
		next := 0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			members := v.Members()
			if rapid.Bool().Draw(t, "leave") && len(members) > 0 {
				gone := rapid.IntRange(0, len(members)-1).Draw(t, "gone")
				members = append(members[:gone], members[gone+1:]...)
			} else {
				for range rapid.IntRange(1, 5).Draw(t, "newcomers") {
					members = append(members, Member{ID: PeerID(fmt.Sprint(next)), Unreachable: rapid.IntRange(0, 4).Draw(t, "nat") == 0})
					next++
				}
			}
			var err error
			if v, err = NewView(members); err != nil {
				t.Fatal(err)
			}
			o, err := NewOverlay(v)
			if errors.Is(err, ErrNoPassive) {
				for _, m := range members {
					if !m.Unreachable {
						t.Fatalf("%v is reachable, and yet: %v", m.ID, err)
					}
				}
				continue
			}
			checkOverlay(t, o)
			checkNames(t, o)
		}
	})
}

func TestEveryoneSeesTheSameLinks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	members := append(classes(20, 44), peers(7, Undecided)...)
	first := mustOverlay(t, members)
	for range 10 {
		other := mustOverlay(t, shuffled(rng, members))
		for _, m := range members {
			if a, b := first.Neighbours(m.ID), other.Neighbours(m.ID); !slices.Equal(a, b) {
				t.Fatalf("%v has neighbours %v or %v, by the order of the argument", m.ID, a, b)
			}
		}
	}
}

func TestEdgesAreTheNeighbours(t *testing.T) {
	o := mustOverlay(t, classes(9, 90))
	edges := map[Edge]bool{}
	for e := range o.Edges() {
		if edges[e] {
			t.Fatalf("%v appears twice", e)
		}
		edges[e] = true
	}
	count := 0
	for _, m := range o.View().Members() {
		if m.Role == Passive {
			continue
		}
		for _, id := range o.Neighbours(m.ID) {
			count++
			if !edges[Edge{Active: m.ID, Passive: id}] {
				t.Errorf("no edge from %v to %v", m.ID, id)
			}
		}
	}
	if count != len(edges) {
		t.Errorf("%d edges, %d neighbours", len(edges), count)
	}
	for range o.Edges() {
		break // an iterator that is left early must stop
	}
}

// Nobody is unreached where only one in ten can be reached from outside.
func TestMostlyUnreachable(t *testing.T) {
	members := peers(100, Undecided)
	for i := range members[:90] {
		members[i].Unreachable = true
	}
	o := mustOverlay(t, members)
	if v := o.View(); v.Actives() != 90 || v.Passives() != 10 {
		t.Fatalf("%d:%d, want 90:10", v.Actives(), v.Passives())
	}
	checkOverlay(t, o)
}

func TestNobodyToAnswer(t *testing.T) {
	members := peers(3, Undecided)
	for i := range members {
		members[i].Unreachable = true
	}
	_, err := NewOverlay(mustView(t, members))
	if !errors.Is(err, ErrNoPassive) || !strings.Contains(err.Error(), "make at least one reachable") {
		t.Errorf("error %v, want ErrNoPassive with a remedy", err)
	}
	alone := mustOverlay(t, members[:1])
	if got := alone.Neighbours(members[0].ID); got != nil {
		t.Errorf("a peer alone has neighbours %v", got)
	}
	if pair := mustOverlay(t, peers(2, Undecided)); pair.Neighbours("stranger") != nil {
		t.Error("a stranger has neighbours")
	}
}

// The order of neighbours is part of the contract: a transcript that a person
// can read. Regenerate with: go test ./topology -run Golden -update
func TestGoldenLinks(t *testing.T) {
	var b strings.Builder
	for _, c := range [][2]int{{1, 1}, {4, 4}, {3, 6}, {7, 5}} {
		members := append(peers(c[0], Active), peers(c[1], Passive)...)
		for i := range members { // short names: a0, p0
			members[i].ID = members[i].ID[:1] + members[i].ID[strings.Index(string(members[i].ID), "-")+1:]
		}
		o := mustOverlay(t, members)
		fmt.Fprintf(&b, "view %v\n", o.View())
		for _, m := range o.View().Members() {
			fmt.Fprintf(&b, "  %-7v %v: %v\n", m.Role, m.ID, o.Neighbours(m.ID))
		}
	}
	path := filepath.Join("testdata", "links.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("links differ from %s:\n%s", path, b.String())
	}
}

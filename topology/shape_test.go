package topology

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
	"gonum.org/v1/gonum/graph/traverse"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// drawnFlock is a flock in a drawn order of ids, in which the first so many are unreachable.
func drawnFlock(t *rapid.T, n, hidden int) []Member {
	members := make([]Member, n)
	seed := rapid.IntRange(0, 1<<30).Draw(t, "seed")
	for i := range members {
		members[i] = Member{ID: PeerID(fmt.Sprint(seed + 7919*i)), Unreachable: i < hidden}
	}
	return members
}

// shaped is the overlay of members.
func shaped(t rapid.TB, shape Shape, members []Member) *Overlay {
	t.Helper()
	view, err := shape.View(members)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// graphOf is the links of an overlay, checked: each joins an active and a passive, once, and both ends know it.
func graphOf(t rapid.TB, o *Overlay) *simple.UndirectedGraph {
	t.Helper()
	place := make(map[PeerID]int64)
	g := simple.NewUndirectedGraph()
	for i, m := range o.View().Members() {
		place[m.ID] = int64(i)
		g.AddNode(simple.Node(i))
	}
	both := 0
	for e := range o.Edges() {
		a, _ := o.View().Lookup(e.Active)
		p, _ := o.View().Lookup(e.Passive)
		if a.Role != Active || p.Role != Passive || g.HasEdgeBetween(place[a.ID], place[p.ID]) {
			t.Fatalf("%s: a link of %v to %v, perhaps not the first", o.View().Shape(), a, p)
		}
		if !slices.Contains(o.Neighbours(e.Passive), e.Active) {
			t.Fatalf("%s: %s does not know its link of %s", o.View().Shape(), e.Passive, e.Active)
		}
		g.SetEdge(simple.Edge{F: simple.Node(place[a.ID]), T: simple.Node(place[p.ID])})
	}
	for _, m := range o.View().Members() {
		both += len(o.Neighbours(m.ID))
	}
	if both != 2*g.Edges().Len() {
		t.Fatalf("%s: %d links as seen from members, %d in all", o.View().Shape(), both, g.Edges().Len())
	}
	return g
}

// deepest is how many links the member farthest from one is away.
func deepest(g *simple.UndirectedGraph, from int64) (depth int) {
	var walk traverse.BreadthFirst
	walk.Walk(g, simple.Node(from), func(_ graph.Node, d int) bool { depth = d; return false })
	return depth
}

// TestEveryShape: for n from 2 to 200 all links join the two classes, nobody is left out, and
// each shape is what it says; a view of a view's members is the same.
func TestEveryShape(t *testing.T) {
	for n := 2; n <= 200; n++ {
		for _, shape := range Shapes() {
			o := shaped(t, shape, peers(n, Undecided))
			g, view := graphOf(t, o), o.View()
			if all := topo.ConnectedComponents(g); len(all) != 1 {
				t.Fatalf("%s of %d is in %d parts", shape, n, len(all))
			}
			degree := 0
			for i := range n {
				degree = max(degree, g.From(int64(i)).Len())
			}
			links := g.Edges().Len()
			switch shape {
			case Ring:
				even, odd := n%2 == 0 && (links != n && n > 2 || degree > 2), n%2 == 1 && (degree > 4 || n > 4 && links != n+1)
				if d := view.Actives() - view.Passives(); even || odd || d < -1 || d > 1 {
					t.Errorf("a ring of %d has %d links, at most %d of one member, %d active", n, links, degree, view.Actives())
				}
			case Tree:
				root := slices.IndexFunc(view.Members(), func(m Member) bool { return m.Role == Passive })
				if depth := deepest(g, int64(root)); links != n-1 || degree > 4 || depth > 2*bits.Len(uint(n)) {
					t.Errorf("a tree of %d has %d links, at most %d of one member, and is %d deep", n, links, degree, depth)
				}
			case Star:
				if links != n-1 || view.Passives() != 1 || degree != n-1 {
					t.Errorf("a star of %d has %d links and %d hubs", n, links, view.Passives())
				}
			}
			if again := shaped(t, shape, view.Members()); again.View().Digest() != view.Digest() {
				t.Errorf("%s of %d: a view of its members differs", shape, n)
			}
		}
	}
}

// TestShapesWithUnreachable: whoever cannot be dialled is active in every shape, the graph stays in one part, and
// what each member sees depends on the members alone.
func TestShapesWithUnreachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 120).Draw(t, "peers")
		members := drawnFlock(t, n, rapid.IntRange(0, n-1).Draw(t, "hidden"))
		shape := rapid.SampledFrom(Shapes()).Draw(t, "shape")
		o := shaped(t, shape, members)
		if all := topo.ConnectedComponents(graphOf(t, o)); len(all) != 1 {
			t.Fatalf("%s of %d is in %d parts", shape, n, len(all))
		}
		for _, m := range members {
			if now, _ := o.View().Lookup(m.ID); m.Unreachable && now.Role != Active {
				t.Fatalf("%s: %s cannot be dialled, and is %s", shape, m.ID, now.Role)
			}
		}
		slices.Reverse(members)
		if shaped(t, shape, members).View().Digest() != o.View().Digest() {
			t.Fatalf("%s: another order of the records makes another view", shape)
		}
	})
}

// TestWeightsAreDoublyStochastic: with the weight 1/(1+c) of the larger degree c of a link's two
// ends, as D-PSGD has it, the mixing matrix of every shape is symmetric, none of its entries is
// negative, and each row sums to 1; and how fast it mixes: the ring slowest, by a law of n².
func TestWeightsAreDoublyStochastic(t *testing.T) {
	for n := 2; n <= 200; n++ {
		gaps, look := make(map[Shape]float64), slices.Contains([]int{2, 3, 4, 8, 16, 33, 64, 200}, n) // at how fast it mixes
		for _, shape := range Shapes() {
			g := graphOf(t, shaped(t, shape, peers(n, Undecided)))
			w := mat.NewSymDense(n, nil)
			for edges := g.Edges(); edges.Next(); {
				a, b := edges.Edge().From().ID(), edges.Edge().To().ID()
				w.SetSym(int(a), int(b), 1/float64(1+max(g.From(a).Len(), g.From(b).Len())))
			}
			for i := range n {
				own := 1.0
				for j := range n {
					own -= w.At(i, j)
				}
				if w.SetSym(i, i, own); !(own > 0) {
					t.Errorf("%s of %d: a member keeps %g of its own model", shape, n, own)
				}
			}
			if !look {
				continue
			}
			var eigen mat.EigenSym
			if !eigen.Factorize(w, false) {
				t.Fatal("the eigenvalues do not converge")
			}
			values := eigen.Values(nil)
			gaps[shape] = 1 - max(values[n-2], -values[0])
		}
		if look {
			t.Logf("%3d peers: gaps %.4v", n, gaps)
		}
		if look && n > 8 && !(gaps[Exponential] > 4*gaps[Ring] && gaps[Ring] > 0) {
			t.Errorf("%d peers: gaps %v", n, gaps)
		}
	}
}

// TestAHubStays: the hub of a star is the same as long as it is there, and when it has gone one member changes its role.
func TestAHubStays(t *testing.T) {
	o := shaped(t, Star, peers(9, Undecided))
	hub := func(v *View) PeerID {
		members := v.Members()
		return members[slices.IndexFunc(members, func(m Member) bool { return m.Role == Passive })].ID
	}
	first, view := hub(o.View()), o.View()
	for i := range 50 {
		view = shaped(t, Star, append(view.Members(), Member{ID: PeerID(fmt.Sprint("later ", i))})).View()
		if hub(view) != first {
			t.Fatalf("joiner %d has made another hub", i)
		}
	}
	left := slices.DeleteFunc(view.Members(), func(m Member) bool { return m.ID == first })
	if after := shaped(t, Star, left).View(); after.Passives() != 1 || hub(after) == first {
		t.Errorf("without the hub there are %d", after.Passives())
	}
}

package overlay

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/traverse"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// mixed is the variance, relative to the start, at which models count as mixed.
	mixed = 1e-6
	// mixingRuns is how many simulations are averaged.
	mixingRuns = 20
	// maxListed is the largest number of peers whose links are listed.
	maxListed = 32
)

// figures has the fields of topology --json.
type figures struct {
	Peers    int     `json:"peers"`
	Active   int     `json:"active"`
	Passive  int     `json:"passive"`
	Degree   int     `json:"degree"`
	Diameter int     `json:"diameter"`
	Depth    int     `json:"depth"`
	Gap      float64 `json:"gap"`
	Rounds   float64 `json:"rounds"`
	load
}

// load is in models: over one link, the least and the most, the most through one peer, and over each link.
type load struct {
	LeastOverLink float64    `json:"load_link_least"`
	MostOverLink  float64    `json:"load_link_most"`
	MostOfPeer    float64    `json:"load_peer_most"`
	OverEach      []linkLoad `json:"load_links"` // by active peer, as those of a living run
}

// linkLoad is of the link between an active peer and a passive one, by their names.
type linkLoad struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	Models float64 `json:"models"`
}

// links is an overlay in numbers: a peer has its index in the view, and a rank among the peers of its role.
type links struct {
	role []topology.Role
	rank []int
	of   [][]int // the neighbours of each peer, in the order of the overlay

	ends  []int    // behind the last peer of each overlay
	names []string // of the members of a living run
	shape topology.Shape
}

// overlayLinks are the links of an overlay, or of those of the stages of a model, one after the other.
func overlayLinks(overlays ...*topology.Overlay) (l links) {
	var count [topology.Passive + 1]int
	for _, o := range overlays {
		place := make(map[topology.PeerID]int, o.View().Len())
		for _, m := range o.View().Members() {
			place[m.ID] = len(l.role)
			l.role, l.rank = append(l.role, m.Role), append(l.rank, count[m.Role])
			count[m.Role]++
		}
		for _, m := range o.View().Members() {
			var of []int
			for _, id := range o.Neighbours(m.ID) {
				of = append(of, place[id])
			}
			l.of = append(l.of, of)
		}
		l.shape, l.ends = o.View().Shape(), append(l.ends, len(l.of))
	}
	return l
}

// actives returns the indices of the active peers.
func (l links) actives() (places []int) {
	for i, role := range l.role {
		if role == topology.Active {
			places = append(places, i)
		}
	}
	return places
}

// starters are the active peers that have links: one that is alone in its stage has none.
func (l links) starters() []int {
	return slices.DeleteFunc(l.actives(), func(a int) bool { return len(l.of[a]) == 0 })
}

func (l links) measure(seed uint64) (figures, error) {
	f := figures{Peers: len(l.of), Active: len(l.actives()), load: l.loads()}
	f.Passive = f.Peers - f.Active
	f.Diameter, f.Depth = l.lengths()
	for _, list := range l.of {
		f.Degree = max(f.Degree, len(list))
	}
	gap, err := l.gap()
	if err != nil {
		return f, err
	}
	f.Gap = math.Round(gap*1e6) / 1e6
	sum := 0.0
	for run := range uint64(mixingRuns) {
		sum += l.exchangesToMix(rand.New(rand.NewPCG(seed, run)))
	}
	f.Rounds = math.Round(sum/mixingRuns*100) / 100
	return f, nil
}

// lengths are the links between the two peers farthest apart, and from the peer in the middle to the farthest one.
func (l links) lengths() (diameter, depth int) {
	g := simple.NewUndirectedGraph()
	for i, list := range l.of {
		for _, j := range list {
			g.SetEdge(simple.Edge{F: simple.Node(i), T: simple.Node(j)})
		}
	}
	depth = len(l.of)
	for i := range l.of {
		farthest := 0
		var walk traverse.BreadthFirst
		walk.Walk(g, simple.Node(i), func(_ graph.Node, away int) bool { farthest = away; return false })
		diameter, depth = max(diameter, farthest), min(depth, farthest)
	}
	return diameter, depth
}

// models go over the link of two peers, both ways together, when each active peer has started one exchange.
func (l links) models(i, j int) float64 {
	if l.role[i] == topology.Passive {
		i = j
	}
	return 2 / float64(len(l.of[i]))
}

// loads are the loads when each active peer has started one exchange.
func (l links) loads() load {
	f, through := load{LeastOverLink: math.Inf(1)}, make([]float64, len(l.of))
	rounded := func(models float64) float64 { return math.Round(models*1e4) / 1e4 }
	for _, a := range l.starters() {
		through[a] = 2 // a model in each direction
		for _, p := range l.of[a] {
			through[p] += l.models(a, p)
			over := rounded(l.models(a, p))
			f.LeastOverLink, f.MostOverLink = min(f.LeastOverLink, over), max(f.MostOverLink, over)
			f.OverEach = append(f.OverEach, linkLoad{l.name(a), l.name(p), over})
		}
	}
	f.MostOfPeer = rounded(slices.Max(through))
	return f
}

// gap is the spectral gap, which the help of the command describes. An exchange of peers a and p multiplies the
// models by I - uuᵀ/2, where u is 1 at a, -1 at p and 0 elsewhere. The mean over exchanges is I - E, whose gap is the
// second smallest eigenvalue of E.
func (l links) gap() (float64, error) {
	n, actives := len(l.of), l.starters()
	e := mat.NewSymDense(n, nil)
	for _, a := range actives {
		weight := float64(n) / 4 / float64(len(actives)) / float64(len(l.of[a]))
		for _, p := range l.of[a] {
			e.SetSym(a, a, e.At(a, a)+weight)
			e.SetSym(p, p, e.At(p, p)+weight)
			e.SetSym(a, p, e.At(a, p)-weight)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(e, false) {
		return 0, errors.New("computing the spectral gap: the eigenvalues did not converge")
	}
	return eigen.Values(nil)[len(l.ends)], nil // ascending; the first is 0, for each overlay
}

// exchangesToMix averages random numbers in pairs until they are mixed, and returns the number of exchanges for each
// peer.
func (l links) exchangesToMix(rng *rand.Rand) float64 {
	n, actives := len(l.of), l.starters()
	x, turn := make([]float64, n), make([]int, n)
	for i := range x {
		x[i], turn[i] = rng.NormFloat64(), rng.IntN(max(len(l.of[i]), 1))
	}
	spread, begin := 0.0, 0 // sum of squared deviations from the mean of the overlay, which each exchange lowers
	for _, end := range l.ends {
		spread += stat.PopVariance(x[begin:end], nil) * float64(end-begin)
		begin = end
	}
	target := spread * mixed
	exchanges := 0
	for ; spread > target; exchanges++ {
		a := actives[rng.IntN(len(actives))]
		p := l.of[a][turn[a]]
		turn[a] = (turn[a] + 1) % len(l.of[a])
		difference := x[a] - x[p]
		spread -= difference * difference / 2
		middle := (x[a] + x[p]) / 2
		x[a], x[p] = middle, middle
	}
	return 2 * float64(exchanges) / float64(n)
}

// report is the output: for a person all of it, as JSON only the figures, and the members and links of a living run.
type report struct {
	figures
	living
	links links
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d peers: %d active, which start exchanges, and %d passive, which answer them\n", r.Peers, r.Active, r.Passive)
	for _, role := range []topology.Role{topology.Active, topology.Passive} {
		fmt.Fprintf(&b, "  links of each %-8s  %s\n", role, r.links.degrees(role))
	}
	fmt.Fprintf(&b, "  diameter               %d, and %d from the peer in the middle\n", r.Diameter, r.Depth)
	fmt.Fprintf(&b, "  spectral gap           %.4f of the expected mixing matrix, for one exchange per peer\n", r.Gap)
	fmt.Fprintf(&b, "  exchanges per peer     %.1f until the variance is a millionth of its start\n", r.Rounds)
	fmt.Fprintf(&b, "  models over a link     %.2f to %.2f, when each active peer has started one exchange; at most %.1f through one peer\n", r.LeastOverLink, r.MostOverLink, r.MostOfPeer)
	if r.Peers > maxListed {
		fmt.Fprintf(&b, "Links are listed for up to %d peers, and drawn for all with --svg FILE.\n", maxListed)
		return b.String()
	}
	b.WriteString("Links, in the order in which they are taken, and the models over each:\n")
	for i, list := range r.links.of {
		fmt.Fprintf(&b, "  %-4s %-8s", r.links.name(i), r.links.role[i])
		for _, j := range list {
			fmt.Fprintf(&b, " %s (%.2f)", r.links.name(j), r.links.models(i, j))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// degrees tells how many links a peer with that role has: one number if all have as many, else the least and the most.
func (l links) degrees(role topology.Role) string {
	least, most := len(l.of), 0
	for i, list := range l.of {
		if l.role[i] == role {
			least, most = min(least, len(list)), max(most, len(list))
		}
	}
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// name is the name of a member, or the letter of a peer's role and its rank in that role.
func (l links) name(i int) string {
	if l.names != nil {
		return l.names[i]
	}
	return fmt.Sprintf("%c%d", l.role[i].String()[0], l.rank[i])
}

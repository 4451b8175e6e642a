package overlay

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/topology"
)

// TestTopologyJSON holds what the command prints against what it has printed, for
// sizes and shares that differ. Regenerate with: go test ./examples/gossipnode/overlay -update
func TestTopologyJSON(t *testing.T) {
	var all strings.Builder
	for _, line := range []string{
		"--peers 2", "--peers 3", "--peers 12", "--peers 64", "--peers 64 --seed 2", "--peers 101", "--peers 200",
		"--peers 30 --active 0.5", "--peers 30 --active 0.34", "--peers 100 --active 0.9",
		"--peers 31 --topology ring", "--peers 32 --topology ring", "--peers 31 --topology tree", "--peers 31 --topology star", "--peers 32 --sites 2", "--peers 64 --sites 8",
	} {
		code, out, stderr := try(append([]string{"topology", "--json"}, strings.Fields(line)...)...)
		if code != cli.ExitDone {
			t.Fatalf("%s: exit code %d: %s", line, code, stderr)
		}
		fmt.Fprintf(&all, "%s: %s", line, regexp.MustCompile(`,"load_links":.*\]`).ReplaceAllString(out, "")) // TestLoadsOfLinks reads them
	}
	path := filepath.Join("testdata", "topology.txt")
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("the figures differ from %s:\n%s", path, all.String())
	}
}

// TestTopologyOf64 holds the figures of 64 peers against what DESIGN promises of them.
func TestTopologyOf64(t *testing.T) {
	code, out, stderr := try("topology", "--peers", "64", "--json")
	var fields map[string]any
	if err := json.Unmarshal([]byte(out), &fields); code != cli.ExitDone || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	for _, name := range []string{"peers", "active", "passive", "degree", "diameter", "gap", "rounds"} {
		if _, ok := fields[name].(float64); !ok {
			t.Errorf("no field %q in %s", name, out)
		}
	}
	if len(fields) != 12 {
		t.Errorf("%d fields, want 12: %s", len(fields), out)
	}
	if fields["active"] != 32.0 || fields["passive"] != 32.0 || fields["rounds"].(float64) > 30 || fields["degree"].(float64) > 13 {
		t.Errorf("%s, want equal classes, at most 30 rounds and degree 13", out)
	}
	if !strings.Contains(stderr, "Links are listed for up to") {
		t.Errorf("no words on standard error: %s", stderr)
	}
}

// TestTopologyAgainstBruteForce computes the figures of small flocks in the dullest
// way: distances by relaxing all pairs, the gap by applying the mean of the matrices
// of all exchanges again and again.
func TestTopologyAgainstBruteForce(t *testing.T) {
	for _, c := range []struct {
		peers  int
		active float64
		shape  string
	}{{2, 0, ""}, {3, 0, ""}, {5, 0, ""}, {8, 0, ""}, {13, 0, ""}, {24, 0, ""}, {9, 0.34, ""}, {10, 0.8, ""}, {30, 0.9, ""}, {12, 0, "ring"}, {13, 0, "tree"}, {9, 0, "star"}} {
		overlay, err := settings{peers: c.peers, active: c.active, seed: 7, shape: c.shape}.overlay()
		if err != nil {
			t.Fatal(err)
		}
		l := overlayLinks(overlay)
		if got, depth := l.lengths(); got != bruteDiameter(l) || depth > got || 2*depth < got {
			t.Errorf("%d peers, %v active: diameter %d, depth %d, want a diameter of %d", c.peers, c.active, got, depth, bruteDiameter(l))
		}
		got, err := l.gap()
		if want := bruteGap(l); err != nil || math.Abs(got-want) > 1e-4 {
			t.Errorf("%d peers, %v active: gap %.6f (%v), want %.6f", c.peers, c.active, got, err, want)
		}
	}
}

func bruteDiameter(l links) (longest int) {
	n := len(l.of)
	d := make([][]int, n)
	for i := range d {
		d[i] = make([]int, n)
		for j := range d[i] {
			if d[i][j] = n; i == j {
				d[i][j] = 0
			}
		}
		for _, j := range l.of[i] {
			d[i][j] = 1
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	for i := range n {
		for j := range n {
			longest = max(longest, d[i][j])
		}
	}
	return longest
}

// bruteGap is how fast deviations from the mean shrink under the mean matrix of one
// exchange, by power iteration, times half the peers.
func bruteGap(l links) float64 {
	n, actives := len(l.of), l.actives()
	w := make([][]float64, n)
	for i := range w {
		w[i] = make([]float64, n)
		w[i][i] = 1
	}
	for _, a := range actives {
		for _, p := range l.of[a] {
			chance := 1 / float64(len(actives)) / float64(len(l.of[a]))
			w[a][a] -= chance / 2
			w[p][p] -= chance / 2
			w[a][p] += chance / 2
			w[p][a] += chance / 2
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	x, y, ratio := make([]float64, n), make([]float64, n), 0.0
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for range 20000 {
		mean, before, after := 0.0, 0.0, 0.0
		for _, v := range x {
			mean += v / float64(n)
		}
		for i := range x {
			x[i] -= mean
			before += x[i] * x[i]
		}
		for i := range y {
			y[i] = 0
			for j := range x {
				y[i] += w[i][j] * x[j]
			}
			after += y[i] * y[i]
		}
		ratio = math.Sqrt(after / before)
		for i := range x {
			x[i] = y[i] / math.Sqrt(after)
		}
	}
	return (1 - ratio) * float64(n) / 2
}

// TestTopologyText shows that small flocks are listed link by link.
func TestTopologyText(t *testing.T) {
	code, out, stderr := try("topology", "--peers", "4")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"4 peers: 2 active", "links of each active    2", "diameter               2", "a0   active   p0 (1.00) p1 (1.00)", "p1   passive  a1 (1.00) a0 (1.00)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestTopologyDrawing reads the drawing of each shape back: it is XML, with its figures, a mark for each peer and for
// each entry of its legend, a line for each link, and a second shade for every colour.
func TestTopologyDrawing(t *testing.T) {
	for i := range 13 { // the last is alone: others mix slowly
		peers, shape := []int{2, 12, 64, 300}[i/4], topology.Shapes()[i%4]
		path := filepath.Join(t.TempDir(), "ring.svg")
		code, out, stderr := try("topology", "--peers", fmt.Sprint(peers), "--topology", shape.String(), "--svg", path, "--json")
		text, err := os.ReadFile(path)
		var f figures
		if code != cli.ExitDone || err != nil || json.Unmarshal([]byte(out), &f) != nil {
			t.Fatalf("exit code %d, %v: %s", code, err, stderr)
		}
		said := fmt.Sprintf("%s: gap %.4f, depth %d, %.2f to %.2f models over a link", shape, f.Gap, f.Depth, f.LeastOverLink, f.MostOverLink)
		overlay, _ := settings{peers: peers, shape: shape.String(), seed: 1}.overlay()
		links := 0
		for range overlay.Edges() {
			links++
		}
		circles, lines := 0, 0
		for decoder := xml.NewDecoder(strings.NewReader(string(text))); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%d peers: %v", peers, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			for _, a := range element.Attr {
				if element.Name.Local == "path" && a.Name.Local == "d" {
					lines += strings.Count(a.Value, "L")
				}
				if a.Name.Local == "class" && !strings.Contains(string(text), "."+a.Value+"{") {
					t.Errorf("%d peers: %q has no shade for dark paper", peers, a.Value)
				}
			}
			if element.Name.Local == "circle" {
				circles++
			}
		}
		if circles != peers+2 || lines != links || !strings.Contains(string(text), said) {
			t.Errorf("%s of %d peers: %d marks and %d lines, want %d and %d, and the text %q", shape, peers, circles, lines, peers+2, links, said)
		}
	}
	code, _, stderr := try("topology", "--svg", filepath.Join(t.TempDir(), "missing", "ring.svg"))
	if code != cli.ExitFailed || !strings.Contains(stderr, "drawing the links") {
		t.Errorf("a folder that is missing: exit code %d: %s", code, stderr)
	}
}

// TestLoadsOfLinks lets every active peer start a thousand exchanges, its links in turn: a thousandth of what goes over
// each link is what the figures, the list and the drawing of each shape say of it.
func TestLoadsOfLinks(t *testing.T) {
	const exchanges = 1000
	for i := range 8 {
		peers, shape := []int{31, 101}[i/4], topology.Shapes()[i%4]
		path := filepath.Join(t.TempDir(), "loads.svg")
		code, out, stderr := try("topology", "--peers", fmt.Sprint(peers), "--topology", shape.String(), "--svg", path, "--json")
		text, err := os.ReadFile(path)
		var f figures
		var drawing struct {
			Paths []struct {
				Width float64 `xml:"stroke-width,attr"`
				Title string  `xml:"title"`
			} `xml:"g>path"`
		}
		if code != cli.ExitDone || err != nil || json.Unmarshal([]byte(out), &f) != nil || xml.Unmarshal(text, &drawing) != nil {
			t.Fatalf("exit code %d, %v: %s", code, err, stderr)
		}
		widths := map[string]float64{}
		for _, p := range drawing.Paths {
			widths[p.Title] = p.Width
		}
		overlay, err := settings{peers: peers, shape: shape.String(), seed: 1}.overlay()
		if err != nil {
			t.Fatal(err)
		}
		l := overlayLinks(overlay)
		over := map[[2]string]int{}
		for _, a := range l.actives() {
			for turn := range exchanges {
				over[[2]string{l.name(a), l.name(l.of[a][turn%len(l.of[a])])}] += 2
			}
		}
		if len(f.OverEach) != len(over) || len(widths) != len(over) {
			t.Errorf("%s of %d peers: %d loads and %d lines of %d links", shape, peers, len(f.OverEach), len(widths), len(over))
		}
		widest := slices.Max(slices.Collect(maps.Values(widths)))
		for _, link := range f.OverEach {
			moved := float64(over[[2]string{link.A, link.B}]) / exchanges
			if math.Abs(link.Models-moved) > 2.1/exchanges {
				t.Errorf("%s of %d peers: %v models from %s to %s, want %v", shape, peers, link.Models, link.A, link.B, moved)
			}
			models := fmt.Sprintf("%.2f", link.Models)
			width := max(widths[link.A+", "+link.B+": "+models+" models"], widths[link.B+", "+link.A+": "+models+" models"])
			if want := widest * link.Models / f.MostOverLink; math.Abs(width-want) > 0.011 {
				t.Errorf("%s of %d peers: a line of %v from %s to %s, want %.2f", shape, peers, width, link.A, link.B, want)
			}
			for _, ends := range [][2]string{{link.A, link.B}, {link.B, link.A}} {
				if row := regexp.MustCompile(`(?m)^  ` + ends[0] + ` .*`).FindString(stderr); peers <= maxListed && !strings.Contains(row, " "+ends[1]+" ("+models+")") {
					t.Errorf("%s of %d peers: no %s from %s to %s in %q", shape, peers, models, ends[0], ends[1], row)
				}
			}
		}
	}
}

// TestStagesMixApart: models of two stages never come to one mean, and a peer alone in its stage has nobody to mix with.
func TestStagesMixApart(t *testing.T) {
	var stages []*topology.Overlay
	for _, peers := range []int{4, 1, 4} {
		s := settings{peers: peers, shape: topology.Exponential.String(), seed: 1}
		o, err := s.overlay()
		if err != nil {
			t.Fatal(err)
		}
		stages = append(stages, o)
	}
	one, err := overlayLinks(stages[0]).measure(1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := overlayLinks(stages...).measure(1)
	if err != nil || all.Peers != 9 || all.MostOverLink != one.MostOverLink || !(all.Gap > 0) || !(all.Rounds > 0) {
		t.Errorf("%+v, %v; of a stage alone %+v", all, err, one)
	}
}

package overlay

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/topology"
)

// Lengths in the drawing, in its own units.
const (
	svgWidth   = 1000.0
	svgHeight  = 1146.0
	svgCentre  = 500.0
	ringOuter  = 430.0 // radius of the larger class
	ringInner  = 365.0 // radius of the smaller class
	ringNames  = 24.0  // distance of a name from its peer, outwards
	maxNames   = 64    // largest number of peers with names
	titleTop   = 26.0
	legendTop  = 1010.0
	legendLine = 36.0
)

// shade is a colour for light and for dark paper.
type shade struct{ light, dark string }

func paper() shade        { return shade{"#ffffff", "#11171d"} }
func ink() shade          { return shade{"#1c2733", "#e6edf3"} }
func activeShade() shade  { return shade{"#0b6bcb", "#6cb6ff"} }
func passiveShade() shade { return shade{"#c25a00", "#ffab57"} }
func reachShades() []shade { // of links, by their reach along the ring
	return []shade{
		{"#15202b", "#f0f6fc"}, {"#1769aa", "#79c0ff"}, {"#0a7d55", "#4ed6a0"}, {"#8a6d00", "#e6c84f"},
		{"#b4530a", "#ffab57"}, {"#b3261e", "#ff8a80"}, {"#9c2a86", "#f29be0"}, {"#5b45c2", "#b3a4ff"},
		{"#4a6572", "#9fb8c5"}, {"#7a4a2b", "#d9a987"}, {"#2f6f6f", "#7fd1d1"},
	}
}

// drawing collects elements, and the rules that change their colours on dark paper. Attributes have the light
// colours, which every viewer supports.
type drawing struct {
	links
	load
	outer        topology.Role // the larger class
	large, small int           // the sizes of both classes
	spots        [][2]float64  // of the peers of a tree or a star, turns and radius; else nil
	body, dark   bytes.Buffer
}

// paint returns an attribute with a colour, and the class that changes it on dark paper.
func (d *drawing) paint(class, attribute string, s shade) string {
	rule := fmt.Sprintf(".%s{%s:%s}", class, attribute, s.dark)
	if !bytes.Contains(d.dark.Bytes(), []byte(rule)) {
		d.dark.WriteString(rule)
	}
	return fmt.Sprintf(`class="%s" %s="%s"`, class, attribute, s.light)
}

// svg draws the ring: both classes at equal distances, and every link as a line whose colour shows its reach
// and whose width its load.
func svg(l links, f figures) []byte {
	actives := len(l.actives())
	d := drawing{links: l, load: f.load, outer: topology.Active, large: actives, small: len(l.of) - actives}
	caption := fmt.Sprintf("%d peers: %d active, %d passive", len(l.of), d.large, d.small)
	measured := fmt.Sprintf("%s: gap %.4f, depth %d, %.2f to %.2f models over a link", l.shape, f.Gap, f.Depth, f.LeastOverLink, f.MostOverLink)
	if d.large < d.small {
		d.outer, d.large, d.small = topology.Passive, d.small, d.large
	}
	if l.shape == topology.Tree || l.shape == topology.Star {
		d.spread()
	}
	fmt.Fprintf(&d.body, `<rect width="%g" height="%g" %s/>`+"\n", svgWidth, svgHeight, d.paint("paper", "fill", paper()))
	reaches := d.drawLinks()
	d.drawPeers()
	d.drawLegend(reaches, caption, measured)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="system-ui,sans-serif" role="img">`+"\n", svgWidth, svgHeight)
	fmt.Fprintf(&out, "<title>%s</title>\n<style>@media(prefers-color-scheme:dark){%s}</style>\n", caption, d.dark.String())
	out.Write(d.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// at is the place of a peer: peers of the smaller class are within the ring of the larger one, in the middle of the
// peers that they are linked to at offset 0.
func (d *drawing) at(i int, further float64) (x, y float64) {
	turn, radius := (float64(d.rank[i])+0.5)/float64(d.small), ringInner-further
	switch {
	case d.spots != nil:
		turn, radius = d.spots[i][0], d.spots[i][1]+further
	case d.role[i] == d.outer:
		turn, radius = (float64(d.rank[i])+0.25)/float64(d.large), ringOuter+further
	}
	sin, cos := math.Sincos(2 * math.Pi * turn)
	return svgCentre + radius*sin, svgCentre - radius*cos
}

// spread finds the spots of a tree: the root, which is the first passive peer, in the middle, others by their depth, in
// sectors as wide as the leaves below them are many.
func (d *drawing) spread() {
	d.spots = make([][2]float64, len(d.of))
	root := slices.Index(d.role, topology.Passive)
	depth := make([]int, len(d.of))
	var leaves func(i, above int) int
	leaves = func(i, above int) (n int) {
		for _, j := range d.of[i] {
			if j != above {
				depth[j] = depth[i] + 1
				n += leaves(j, i)
			}
		}
		return max(n, 1)
	}
	all := float64(leaves(root, -1))
	deepest := float64(slices.Max(depth))
	var place func(i, above int, from float64)
	place = func(i, above int, from float64) {
		d.spots[i] = [2]float64{(from + float64(leaves(i, above))/2) / all, ringOuter * float64(depth[i]) / deepest}
		for _, j := range d.of[i] {
			if j != above {
				place(j, i, from)
				from += float64(leaves(j, i))
			}
		}
	}
	place(root, -1, 0)
}

// reach is how far a link from a peer of the larger class goes along the ring of the smaller one, in either
// direction.
func (d *drawing) reach(from, to int) int {
	if d.spots != nil {
		return 0
	}
	offset := ((d.rank[to]-d.rank[from]*d.small/d.large)%d.small + d.small) % d.small
	return min(offset, d.small-offset)
}

// drawLinks draws the farthest links first, so that near ones stay visible, and returns the reaches that occur. A viewer
// shows the load of the link that is pointed at.
func (d *drawing) drawLinks() []int {
	lines := make(map[int]*bytes.Buffer)
	for i, list := range d.of {
		if d.role[i] != d.outer {
			continue
		}
		for _, j := range list {
			reach := d.reach(i, j)
			if lines[reach] == nil {
				lines[reach] = new(bytes.Buffer)
			}
			x1, y1 := d.at(i, 0)
			x2, y2 := d.at(j, 0)
			fmt.Fprintf(lines[reach], `<path stroke-width="%.2f" d="M%.1f %.1fL%.1f %.1f"><title>%s, %s: %.2f models</title></path>`,
				d.width(d.models(i, j)), x1, y1, x2, y2, html.EscapeString(d.name(i)), html.EscapeString(d.name(j)), d.models(i, j))
		}
	}
	reaches := slices.Sorted(maps.Keys(lines))
	opacity := min(max(8/math.Sqrt(float64(len(d.of))), 0.3), 0.85)
	for k, reach := range slices.Backward(reaches) {
		fmt.Fprintf(&d.body, `<g %s stroke-opacity="%.2f">%s</g>`+"\n", d.paintReach(k), opacity, lines[reach])
	}
	return reaches
}

// width is that of a link, by its load: thinner in large flocks, which have many links.
func (d *drawing) width(models float64) float64 {
	return max(min(max(21/math.Sqrt(float64(len(d.of))), 0.56), 3.84)*models/d.MostOverLink, 0.3)
}

func (d *drawing) paintReach(k int) string {
	shades := reachShades()
	return d.paint(fmt.Sprintf("reach%d", k), "stroke", shades[k%len(shades)])
}

// drawPeers draws active peers as discs and passive ones as rings, to tell the classes apart without colours.
func (d *drawing) drawPeers() {
	size := min(max(90/math.Sqrt(float64(len(d.of))), 2), 13)
	for i := range d.of {
		x, y := d.at(i, 0)
		d.drawPeer(x, y, size, d.role[i])
	}
	if len(d.of) > maxNames {
		return
	}
	// An outline in the colour of the paper separates names from links behind them.
	fmt.Fprintf(&d.body, `<g %s stroke-width="4" paint-order="stroke" font-size="15" text-anchor="middle">`+"\n", d.paint("seam", "stroke", paper()))
	for i := range d.of {
		x, y := d.at(i, ringNames)
		if d.names != nil { // long ones stand below
			x, y = d.at(i, 0)
			y += ringNames
		}
		fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" dy="5" %s>%s</text>`+"\n", x, y, d.paint("ink", "fill", ink()), html.EscapeString(d.name(i)))
	}
	d.body.WriteString("</g>\n")
}

func (d *drawing) drawPeer(x, y, size float64, role topology.Role) {
	if role == topology.Active {
		fmt.Fprintf(&d.body, `<circle cx="%.1f" cy="%.1f" r="%.1f" %s/>`+"\n", x, y, size, d.paint("active", "fill", activeShade()))
		return
	}
	fmt.Fprintf(&d.body, `<g %s><circle cx="%.1f" cy="%.1f" r="%.1f" stroke-width="%.1f" %s/></g>`+"\n",
		d.paint("paper", "fill", paper()), x, y, size-size/6, size/3, d.paint("passive", "stroke", passiveShade()))
}

// drawLegend explains the shapes, the widths and the colours.
func (d *drawing) drawLegend(reaches []int, caption, measured string) {
	say := func(x, y float64, text string) {
		fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" font-size="20" %s>%s</text>`+"\n", x, y, d.paint("ink", "fill", ink()), text)
	}
	const left, column, mark = 60.0, 82.0, 10.0
	line := func(x, y, width float64, paint, text string) {
		fmt.Fprintf(&d.body, `<path %s stroke-width="%.2f" d="M%.1f %.1fh28"/>`+"\n", paint, width, x-10, y-7)
		say(x+24, y, text)
	}
	d.drawPeer(left, legendTop-7, mark, topology.Active)
	say(left+20, legendTop, "active: starts exchanges")
	d.drawPeer(left+300, legendTop-7, mark, topology.Passive)
	say(left+320, legendTop, "passive: answers them")
	say(left+600, legendTop, caption)
	say(left-10, titleTop, measured)
	say(left-10, legendTop+legendLine, "models over a link:")
	for k, models := range slices.Compact([]float64{d.LeastOverLink, d.MostOverLink}) {
		line(left+200+float64(k)*2*column, legendTop+legendLine, d.width(models), d.paintReach(0), fmt.Sprintf("%.2f", models))
	}
	if d.spots != nil {
		return
	}
	say(left-10, legendTop+2*legendLine, "places along the ring that a link reaches:")
	for k, reach := range reaches {
		line(left+float64(k)*column, legendTop+3*legendLine, 5, d.paintReach(k), fmt.Sprint(reach))
	}
}

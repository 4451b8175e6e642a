package describe

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table/summary"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "percent": percent, "quantile": quantile, "distinct": distinct, "bars": barsOf, "plot": plotOf, "cut": cut,
	"add": func(a, b float64) float64 { return a + b }, "height": func(bars []bar) int { return barStep * len(bars) },
}).Parse(pageText))

// write writes a result as a page that loads nothing.
func write(out io.Writer, r Result) error {
	p := page{Result: r, Head: r.head(), Heat: heatOf(r.Correlations)}
	for _, c := range r.Columns {
		if c.Relation != nil {
			p.Tells = append(p.Tells, bar{Label: c.Name, Text: tells(c), size: c.Relation.Share})
		}
	}
	slices.SortStableFunc(p.Tells, func(a, b bar) int { return int(math.Copysign(1, b.size-a.size)) })
	p.Tells = laidOut(p.Tells)
	return pageTemplate.Execute(out, p)
}

// page is what the template is given.
type page struct {
	Result
	Head  string
	Tells []bar
	Heat  heat
}

// bar is one of horizontal bars; places are in units of a picture that is 320 wide.
type bar struct {
	Label, Text string
	Y, Width    float64
	Pale        bool
	size        float64
}

const (
	barStep = 20
	barMost = 112 // width of the longest

	maxLabel = 14
)

func laidOut(bars []bar) []bar {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.size)
	}
	for i := range bars {
		bars[i].Y, bars[i].Width = float64(i*barStep), rounded(barMost*bars[i].size/max(most, math.SmallestNonzeroFloat64))
	}
	return bars
}

// barsOf is cells as bars, with their shares.
func barsOf(cells []summary.Cell, others int64) (bars []bar) {
	total := others
	for _, c := range cells {
		total += c.Rows
	}
	if others > 0 {
		cells = append(slices.Clone(cells), summary.Cell{Value: "others", Rows: others})
	}
	for _, c := range cells {
		bars = append(bars, bar{Label: c.Value, Text: percent(float64(c.Rows) / float64(total)), size: float64(c.Rows)})
	}
	if others > 0 {
		bars[len(bars)-1].Pale = true
	}
	return laidOut(bars)
}

func rounded(x float64) float64 { return math.Round(10*x) / 10 }

// cut shortens a label.
func cut(text string) string {
	if runes := []rune(text); len(runes) > maxLabel {
		return string(runes[:maxLabel-1]) + "…"
	}
	return text
}

// column is a bin of a histogram as it is drawn; Tail: it holds all beyond the bins of one width.
type column struct {
	X, Y, Width, Height float64
	Tail                bool
	Text                string
}

// plot is a histogram as it is drawn, from Low to High between its tails.
type plot struct {
	Columns   []column
	Low, High string
}

const (
	plotWidth, plotHeight = 320, 90
	tailWidth             = 9
)

// plotOf draws heights as rows for one width of a bin; what lies beyond both ends has a bar of its own.
func plotOf(n *summary.Numbers) (p plot) {
	h := n.Histogram
	last := len(h.Rows) - 1
	var widths []float64
	for i := range h.Rows {
		widths = append(widths, h.Edges[i+1]-h.Edges[i])
	}
	unit := slices.Sorted(slices.Values(widths))[len(widths)/2]
	from, to, x0, x1 := 0, last, 0.0, float64(plotWidth)
	tail := func(i int) bool { return last >= 3 && widths[i] > 1.01*unit }
	if tail(0) {
		from, x0 = 1, tailWidth+2
	}
	if tail(last) {
		to, x1 = last-1, plotWidth-tailWidth-2
	}
	low, high, most := h.Edges[from], h.Edges[to+1], 0.0
	height := func(i int) float64 {
		return float64(h.Rows[i]) * min(unit/widths[i], 1)
	}
	for i := from; i <= to; i++ {
		most = max(most, height(i))
	}
	for i, rows := range h.Rows {
		at := func(edge float64) float64 { return x0 + (x1-x0)*(edge-low)/max(high-low, math.SmallestNonzeroFloat64) }
		c := column{X: at(h.Edges[i]), Text: fmt.Sprintf("%s to %s: %d rows", number(h.Edges[i]), number(h.Edges[i+1]), rows), Tail: i < from || i > to}
		if c.Width, c.Height = max(at(h.Edges[i+1])-c.X-1, 0.8), height(i); c.Tail {
			c.X, c.Width, c.Height = float64(i)/float64(max(last, 1))*(plotWidth-tailWidth), tailWidth, min(float64(rows), most)
		}
		c.X, c.Width, c.Height = rounded(c.X), rounded(c.Width), rounded(plotHeight*c.Height/max(most, 1))
		if c.Y = plotHeight - c.Height; rows > 0 {
			p.Columns = append(p.Columns, c)
		}
	}
	if low-math.Floor(low) == 0.5 && high-math.Floor(high) == 0.5 { // between whole numbers
		low, high = low+0.5, high-0.5
	}
	p.Low, p.High = number(max(low, n.Min)), number(min(high, n.Max))
	return p
}

// heat is the correlations as a square.
type heat struct {
	Names       []name
	Cells       []cell
	Left, Width float64
}

type name struct {
	Text string
	At   float64
}

type cell struct {
	X, Y, Opacity float64
	Sign, Text    string
}

const heatStep = 22

func heatOf(all []summary.Correlation) (h heat) {
	places := map[string]float64{}
	for _, c := range all {
		for _, column := range c.Columns {
			if _, known := places[column]; !known {
				places[column] = float64(len(places) * heatStep)
				h.Names = append(h.Names, name{column, places[column]})
			}
		}
	}
	h.Left = 118
	for _, c := range all {
		for side, column := range c.Columns {
			x, y := h.Left+places[column], places[c.Columns[1-side]]
			sign := "pos"
			if c.R < 0 {
				sign = "neg"
			}
			h.Cells = append(h.Cells, cell{x, y, math.Round(100*math.Abs(c.R)) / 100, sign, fmt.Sprintf("%s, %s: %+.3f", c.Columns[0], c.Columns[1], c.R)})
		}
	}
	h.Width = h.Left + float64(len(h.Names)*heatStep)
	return h
}

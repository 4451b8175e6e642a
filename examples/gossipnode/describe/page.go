package describe

import (
	"cmp"
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
	"number": number, "percent": percent, "quantile": quantile, "distinct": distinct, "bars": barsOf, "plot": plotOf, "cut": cut, "abs": math.Abs,
	"add": func(a, b float64) float64 { return rounded(a + b) }, "times": func(a int, b float64) float64 { return float64(a) * b },
}).Parse(pageText))

// write writes a result as a web page that loads nothing.
func write(out io.Writer, r Result) error {
	var tell []bar
	for _, c := range r.Columns {
		if c.Relation != nil {
			tell = append(tell, bar{Label: c.Name, Text: percent(c.Relation.Share), Share: c.Relation.Share})
		}
	}
	slices.SortStableFunc(tell, func(a, b bar) int { return cmp.Compare(b.Share, a.Share) })
	places := map[string]int{} // of correlated columns, the most correlated next to each other
	for _, c := range r.Correlations {
		for _, column := range c.Columns {
			if _, known := places[column]; !known {
				places[column] = len(places)
			}
		}
	}
	return pageTemplate.Execute(out, struct {
		Result
		Head   string
		Tell   []bar
		Places map[string]int
	}{r, r.head(), lengthened(tell), places})
}

// bar is one of several horizontal bars; Length is relative to the longest.
type bar struct {
	Label, Text   string
	Share, Length float64
	Pale          bool
}

func lengthened(bars []bar) []bar {
	most := math.SmallestNonzeroFloat64
	for _, b := range bars {
		most = max(most, b.Share)
	}
	for i := range bars {
		bars[i].Length = bars[i].Share / most
	}
	return bars
}

// barsOf makes bars of the shares of cells.
func barsOf(cells []summary.Cell, others int64) (bars []bar) {
	total := float64(others)
	for _, c := range cells {
		total += float64(c.Rows)
	}
	for _, c := range append(slices.Clone(cells), summary.Cell{Value: "others", Rows: others}) {
		bars = append(bars, bar{Label: c.Value, Text: percent(float64(c.Rows) / total), Share: float64(c.Rows) / total})
	}
	if bars[len(cells)].Pale = true; others == 0 {
		bars = bars[:len(cells)]
	}
	return lengthened(bars)
}

func rounded(x float64) float64 { return math.Round(10*x) / 10 }

// maxLabel is how many letters of a label fit.
const maxLabel = 14

func cut(text string) string {
	if runes := []rune(text); len(runes) > maxLabel {
		return string(runes[:maxLabel-1]) + "…"
	}
	return text
}

// column is a bin in the drawing of a histogram; Pale marks bins outside of those of one width.
type column struct {
	X, Y, Width, Height float64
	Pale                bool
	Text                string
}

// plot is the drawing of a histogram, from Low to High between pale columns.
type plot struct {
	Columns   []column
	Low, High string
}

const (
	plotWidth, plotHeight = 320, 90
	paleWidth             = 9
)

// plotOf draws heights as rows in bins of one width. Values beyond them get a column at each end.
func plotOf(n *summary.Numbers) (p plot) {
	edges, last := n.Histogram.Edges, len(n.Histogram.Rows)-1
	var widths, heights []float64
	for i := range n.Histogram.Rows {
		widths = append(widths, edges[i+1]-edges[i])
	}
	unit := slices.Sorted(slices.Values(widths))[len(widths)/2]
	for i, rows := range n.Histogram.Rows {
		heights = append(heights, float64(rows)*min(unit/max(widths[i], math.SmallestNonzeroFloat64), 1))
	}
	from, to, left, right := 0, last, 0.0, float64(plotWidth)
	if last >= 3 && widths[0] > 1.01*unit {
		from, left = 1, paleWidth+2
	}
	if last >= 3 && widths[last] > 1.01*unit {
		to, right = last-1, plotWidth-paleWidth-2
	}
	low, high, most := edges[from], edges[to+1], max(slices.Max(heights[from:to+1]), 1)
	at := func(edge float64) float64 {
		return left + (right-left)*(edge-low)/max(high-low, math.SmallestNonzeroFloat64)
	}
	for i, rows := range n.Histogram.Rows {
		c := column{X: at(edges[i]), Width: max(at(edges[i+1])-at(edges[i])-1, 0.8), Pale: i < from || i > to}
		if c.Pale {
			c.X, c.Width, heights[i] = float64(i/max(last, 1))*(plotWidth-paleWidth), paleWidth, min(float64(rows), most)
		}
		c.Text = fmt.Sprintf("%s to %s: %d rows", number(edges[i]), number(edges[i+1]), rows)
		c.X, c.Width, c.Height = rounded(c.X), rounded(c.Width), rounded(plotHeight*heights[i]/most)
		c.Y = rounded(plotHeight - c.Height)
		p.Columns = append(p.Columns, c)
	}
	if low-math.Floor(low) == 0.5 && high-math.Floor(high) == 0.5 { // the edges are between whole numbers
		low, high = low+0.5, high-0.5
	}
	p.Low, p.High = number(max(low, n.Min)), number(min(high, n.Max))
	return p
}

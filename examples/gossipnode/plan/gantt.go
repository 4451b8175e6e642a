package plan

import (
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgimg" // formats of the picture
	_ "gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/plan"
)

// Sizes of the picture, and how much it names.
const (
	width       = 11 * vg.Inch
	rowHeight   = 0.28 * vg.Inch
	leastHeight = 3 * vg.Inch
	mostHeight  = 30 * vg.Inch
	bar         = 0.38 // half of a bar, in rows
	maxLabels   = 100  // members, above which they are not named
	maxLegend   = 24   // tasks in the legend
	maxLetters  = 24   // of a name
)

// draw draws a row for each member and a bar for each assignment, in the colour of its task, with dashed lines for
// deadlines.
func draw(p *plan.Plan, path string) error {
	chart, height := plot.New(), min(max(rowHeight*vg.Length(len(p.State.Members)), leastHeight), mostHeight)
	chart.Title.Text = fmt.Sprintf("%s on %s: %.4g s (at least %.4g s), members busy for %.0f %%",
		cli.Plural(uint64(len(p.State.Tasks)), "task"), cli.Plural(uint64(len(p.State.Members)), "member"), p.Makespan, p.Bound, 100*p.Resource)
	chart.X.Label.Text = "s"
	chart.Title.Padding, chart.Legend.Top, chart.Legend.XOffs = vg.Points(8), true, vg.Points(-8)
	rows := len(p.State.Members)
	chart.Y.Min, chart.Y.Max, chart.X.Min, chart.X.Max = -0.7, float64(rows)-0.3, p.Start, p.Start+1.3*p.Makespan // room for the legend
	var ticks plot.ConstantTicks
	for i, m := range p.State.Members {
		tick := plot.Tick{Value: float64(rows - 1 - i)}
		if rows <= maxLabels {
			tick.Label = cli.Cut(cli.Printable(m.Name), maxLetters)
		}
		ticks = append(ticks, tick)
	}
	chart.Y.Tick.Marker = ticks
	for i, t := range p.State.Tasks {
		if err := drawTask(chart, p, t, plotutil.Color(i), i < maxLegend); err != nil {
			return err
		}
	}
	canvas, err := chart.WriterTo(width, height+vg.Inch, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return err
	}
	return files.Replace(path, 0o644, func(w io.Writer) error {
		_, err := canvas.WriteTo(w)
		return err
	})
}

// drawTask draws the bars of a task, and its deadline.
func drawTask(chart *plot.Plot, p *plan.Plan, t plan.Task, paint color.Color, named bool) error {
	for _, a := range p.Assignments {
		if a.Task != t.Name {
			continue
		}
		row := float64(len(p.State.Members) - 1 - slices.IndexFunc(p.State.Members, func(m plan.Member) bool { return m.Name == a.Member }))
		box, err := plotter.NewPolygon(plotter.XYs{{X: a.Start, Y: row - bar}, {X: a.End, Y: row - bar}, {X: a.End, Y: row + bar}, {X: a.Start, Y: row + bar}})
		if err != nil {
			return err
		}
		box.Color, box.LineStyle.Width, box.LineStyle.Color = paint, vg.Points(0.5), color.White
		if chart.Add(box); named {
			chart.Legend.Add(cli.Cut(cli.Printable(t.Name), maxLetters), box)
			named = false
		}
	}
	if t.Deadline == 0 || t.Deadline > chart.X.Max {
		return nil
	}
	deadline, err := plotter.NewLine(plotter.XYs{{X: t.Deadline, Y: chart.Y.Min}, {X: t.Deadline, Y: chart.Y.Max}})
	if err != nil {
		return err
	}
	deadline.Color, deadline.Dashes = paint, []vg.Length{vg.Points(4), vg.Points(3)}
	chart.Add(deadline)
	return nil
}

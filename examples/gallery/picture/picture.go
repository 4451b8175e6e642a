// Package picture draws what the programs of the gallery have seen, as gossipnode's plots: curves or bars, in a file whose name
// ends in .svg or .png.
package picture

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/seed-97356399/murmuration/examples/gossipnode/compare"
)

// Axes say what a picture shows: its title, a smaller line below, and the two axes.
type Axes struct{ Title, Below, X, Y string }

// Curve is a line with a name.
type Curve = compare.Curve

// Lines draws curves, of which there is at least one.
func Lines(path string, a Axes, curves ...Curve) error {
	panel, err := compare.Panel("", a.X, a.Y, curves)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	if points := curves[0].Points; len(points) > 0 && points[len(points)-1].Y < points[0].Y { // there is room above curves that fall
		panel.Legend.Top, panel.Legend.YOffs = true, -panel.Legend.YOffs
	}
	return compare.Draw(path, a.Title, a.Below, [][]*plot.Plot{{panel}})
}

// Bars draws a bar for each name, from 0 up.
func Bars(path string, a Axes, names []string, values []float64) error {
	panel, err := compare.Panel("", a.X, a.Y, nil)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	bars, err := plotter.NewBarChart(plotter.Values(values), vg.Points(26))
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	bars.Color, bars.LineStyle.Width = compare.Colour(0), 0
	panel.Add(bars)
	panel.NominalX(names...)
	panel.Y.Min = 0
	return compare.Draw(path, a.Title, a.Below, [][]*plot.Plot{{panel}})
}

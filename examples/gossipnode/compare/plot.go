package compare

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // formats of draw
	_ "gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
)

// The size of a panel, and when an axis is logarithmic.
const (
	panelWidth  = 5.2 * vg.Inch
	panelHeight = 3.4 * vg.Inch
	// logFrom is the ratio of the longest to the shortest race from which on the
	// shorter ones would not be seen otherwise.
	logFrom = 6
)

// palette is told apart by colour-blind readers too (Okabe and Ito).
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{0, 0, 0, 255}, color.RGBA{150, 150, 150, 255},
}

// plotFault is what is wrong with the name of a file to draw into.
func plotFault(path string) error {
	switch filepath.Ext(path) {
	case ".png", ".svg":
		return nil
	}
	if path == "" {
		return nil
	}
	return cli.Faultf("plot", "%q: want a name that ends in .png or .svg", path)
}

// plotRaces draws two panels for each race: accuracy against time and against bytes.
func plotRaces(path string, races []race) error {
	panels := make([][]*plot.Plot, len(races))
	for i, r := range races {
		inTime, err := panel(r, "virtual time, s", func(_ entrant, p simulate.CurvePoint) float64 { return p.Seconds })
		if err != nil {
			return fmt.Errorf("drawing %s: %w", r.World, err)
		}
		inBytes, err := panel(r, "sent by a peer, MB", func(e entrant, p simulate.CurvePoint) float64 { return float64(p.BytesSent) / 1e6 / float64(e.Peers) })
		if err != nil {
			return fmt.Errorf("drawing %s: %w", r.World, err)
		}
		panels[i] = []*plot.Plot{inTime, inBytes}
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("drawing the race: %w", err)
	}
	if err := drawPanels(file, panels, strings.TrimPrefix(filepath.Ext(path), ".")); err != nil {
		_ = file.Close() // what went wrong first is told
		return fmt.Errorf("drawing the race: %w", err)
	}
	return file.Close()
}

// drawPanels draws rows of panels.
func drawPanels(file *os.File, panels [][]*plot.Plot, format string) error {
	width, height := panelWidth*vg.Length(len(panels[0])), panelHeight*vg.Length(len(panels))
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return err
	}
	tiles := draw.Tiles{
		Rows: len(panels), Cols: len(panels[0]),
		PadX: vg.Points(14), PadY: vg.Points(14), PadTop: vg.Points(8), PadBottom: vg.Points(8), PadLeft: vg.Points(8), PadRight: vg.Points(14),
	}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for j, c := range row {
			panels[i][j].Draw(c)
		}
	}
	_, err = canvas.WriteTo(file)
	return err
}

// panel draws accuracy against something that grows.
func panel(r race, axis string, of func(entrant, simulate.CurvePoint) float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = r.World, axis, "held-out accuracy, %"
	p.Legend.Top, p.Legend.Left = false, false
	p.Legend.YOffs, p.Legend.XOffs, p.Legend.Padding = vg.Points(4), vg.Points(-4), vg.Points(2)
	p.Add(plotter.NewGrid())
	least, most := 0.0, 0.0
	for i, e := range r.Results {
		var line plotter.XYs
		for _, point := range e.Curve {
			if x := of(e, point); x > 0 {
				line = append(line, plotter.XY{X: x, Y: 100 * float64(point.TestAccuracy.Mean)})
			}
		}
		if len(line) == 0 {
			continue // who sends nothing has no place on the axis of bytes
		}
		if last := line[len(line)-1].X; least == 0 || last < least {
			least = last
		}
		most = max(most, line[len(line)-1].X)
		drawn, err := plotter.NewLine(line)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width = palette[i%len(palette)], vg.Points(1.6)
		if i >= len(palette) {
			drawn.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		p.Add(drawn)
		p.Legend.Add(e.Name, drawn)
	}
	if least > 0 && most/least > logFrom {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	return p, nil
}

package compare

import (
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // formats of draw
	_ "gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
)

// The size of a panel, and when an axis is logarithmic.
const (
	panelWidth  = 5.2 * vg.Inch
	panelHeight = 3.4 * vg.Inch
	// logFrom is the ratio of the longest to the shortest race above which the axis is logarithmic: otherwise the
	// shorter ones would be invisible.
	logFrom = 6
	// headHeight is the space for the title and the settings; maxSettings is how many characters of settings fit in
	// one line.
	headHeight  = 0.65 * vg.Inch
	maxSettings = 140
)

// The colours of the dashboard; further lines are dashed.
var (
	ink, quiet, edge = color.RGBA{0x17, 0x21, 0x2c, 255}, color.RGBA{0x58, 0x66, 0x76, 255}, color.RGBA{0xdd, 0xe3, 0xea, 255}
	palette          = []color.Color{
		color.RGBA{0x0b, 0x6b, 0xcb, 255}, color.RGBA{0xc2, 0x5a, 0x00, 255}, color.RGBA{0x0a, 0x7d, 0x55, 255}, color.RGBA{0x5b, 0x45, 0xc2, 255},
		color.RGBA{0xb3, 0x26, 0x1e, 255}, color.RGBA{0x8a, 0x65, 0x00, 255}, color.RGBA{0x9c, 0x2a, 0x86, 255}, color.RGBA{0x93, 0xa1, 0xb0, 255},
	}
)

// Colour is the i-th of the plots, from 0; they come again after eight.
func Colour(i int) color.Color { return palette[i%len(palette)] }

// typed is a text style in the dashboard's font.
func typed(of draw.TextStyle, c color.Color, size vg.Length) draw.TextStyle {
	of.Color, of.Font.Variant, of.Font.Size = c, "Sans", size
	return of
}

// PlotFault returns an error if path, of this flag, is not a valid name for a plot.
func PlotFault(flag, path string) error {
	if ending := filepath.Ext(path); path != "" && ending != ".png" && ending != ".svg" {
		return cli.Faultf(flag, "%q: want a name that ends in .png or .svg", path)
	}
	return cli.Unwritable(flag, path)
}

// plotRaces draws two panels for each race, accuracy against time and against bytes, or epochs where models have stages, below a
// title and the settings.
func plotRaces(path, title, settings string, races []race) error {
	panels := make([][]*plot.Plot, len(races))
	for i, r := range races {
		inTime, err := panel(r, "virtual time, s", func(_ entrant, p simulate.CurvePoint) float64 { return p.Seconds })
		if err != nil {
			return fmt.Errorf("drawing %s: %w", r.World, err)
		}
		axis, of := "sent by a peer, MB", func(e entrant, p simulate.CurvePoint) float64 { return float64(p.BytesSent) / 1e6 / float64(e.Peers) }
		if r.staged() { // what goes from stage to stage is no matter of strategies
			axis, of = "passes over the data", func(e entrant, p simulate.CurvePoint) float64 { return p.Progress * e.epochs }
		}
		other, err := panel(r, axis, of)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", r.World, err)
		}
		panels[i] = []*plot.Plot{inTime, other}
	}
	return Draw(path, title, settings, panels)
}

// Draw draws rows of panels below a title and a smaller line, into a file whose name ends in .png or .svg.
func Draw(path, title, below string, panels [][]*plot.Plot) error {
	err := files.Replace(path, 0o644, func(w io.Writer) error {
		return drawPanels(w, title, below, panels, strings.TrimPrefix(filepath.Ext(path), "."))
	})
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	return nil
}

// drawPanels draws rows of panels below their title.
func drawPanels(file io.Writer, title, settings string, panels [][]*plot.Plot, format string) error {
	width, height := panelWidth*vg.Length(len(panels[0])), headHeight+panelHeight*vg.Length(len(panels))
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return err
	}
	tiles := draw.Tiles{
		Rows: len(panels), Cols: len(panels[0]),
		PadX: vg.Points(14), PadY: vg.Points(14), PadTop: vg.Points(8), PadBottom: vg.Points(8), PadLeft: vg.Points(8), PadRight: vg.Points(14),
	}
	page, style := draw.New(canvas), panels[0][0].Title.TextStyle
	style.XAlign, style.YAlign = draw.XLeft, draw.YTop
	bold := typed(style, ink, vg.Points(13))
	bold.Font.Weight = xfont.WeightBold
	page.FillText(bold, vg.Point{X: tiles.PadLeft, Y: height - vg.Points(9)}, title)
	page.FillText(typed(style, quiet, vg.Points(9)), vg.Point{X: tiles.PadLeft, Y: height - vg.Points(27)}, cli.Cut(settings, maxSettings))
	for i, row := range plot.Align(panels, tiles, draw.Crop(page, 0, 0, 0, -headHeight)) {
		for j, c := range row {
			panels[i][j].Draw(c)
		}
	}
	_, err = canvas.WriteTo(file)
	return err
}

// panel draws accuracy against time or bytes.
func panel(r race, axis string, of func(entrant, simulate.CurvePoint) float64) (*plot.Plot, error) {
	var curves []Curve
	least, most := 0.0, 0.0
	for _, e := range r.Results {
		var line plotter.XYs
		for _, point := range e.Curve {
			if x := of(e, point); x > 0 {
				line = append(line, plotter.XY{X: x, Y: 100 * float64(point.TestAccuracy.Mean)})
			}
		}
		curves = append(curves, Curve{e.Name, line}) // a racer that sends nothing has no place on the axis of bytes
		if len(line) == 0 {
			continue
		}
		if last := line[len(line)-1].X; least == 0 || last < least {
			least = last
		}
		most = max(most, line[len(line)-1].X)
	}
	p, err := Panel(r.World+": "+r.about, axis, "held-out accuracy, %", curves)
	if err == nil && least > 0 && most/least > logFrom {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	return p, err
}

// Curve is a line with a name; one without is drawn thin, and is not in the legend.
type Curve struct {
	Name   string
	Points plotter.XYs
}

// Panel draws curves, in the colours and type of the dashboard. Those without points are left out.
func Panel(title, x, y string, curves []Curve) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle, p.Legend.TextStyle = typed(p.Title.TextStyle, ink, vg.Points(11)), typed(p.Legend.TextStyle, ink, vg.Points(9))
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle, a.Tick.Label = typed(a.Label.TextStyle, quiet, vg.Points(10)), typed(a.Tick.Label, quiet, vg.Points(9))
		a.LineStyle.Color, a.Tick.LineStyle.Color = edge, edge
	}
	p.Legend.Top, p.Legend.Left = false, false
	p.Legend.YOffs, p.Legend.XOffs, p.Legend.Padding = vg.Points(4), vg.Points(-4), vg.Points(2)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = edge, edge
	p.Add(grid)
	i := -1 // the number of the named curve
	for _, c := range curves {
		if c.Name != "" {
			i++
		}
		if len(c.Points) == 0 {
			continue
		}
		drawn, err := plotter.NewLine(c.Points)
		if err != nil {
			return nil, err
		}
		if p.Add(drawn); c.Name == "" {
			drawn.Color = edge
			continue
		}
		drawn.Color, drawn.Width = Colour(i), vg.Points(1.6)
		if i >= len(palette) {
			drawn.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		p.Legend.Add(c.Name, drawn)
	}
	return p, nil
}

package history

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/compare"
)

// Command makes the command plot.
func Command(std cli.Streams) *cobra.Command {
	var (
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "plot FILE",
		Short: "Draw how a run went, from the file that --history has written",
		Long: `Plot draws what run or local has written with --history: the loss, the accuracy on
held-out data and the distance of the models against the time, and what was sent, a
line for each peer. It draws a run that still goes on as far as it is.`,
		Example: `  gossipnode local --history run.jsonl && gossipnode plot run.jsonl
  gossipnode plot run.jsonl --out run.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			if out = cmp.Or(out, args[0]+".png"); compare.PlotFault("out", out) != nil {
				return sources.Usage(compare.PlotFault("out", out))
			}
			peers, spoilt, err := Read(args[0])
			if err == nil && len(peers) == 0 {
				err = fmt.Errorf("no lines of --history, and %d others", spoilt)
			}
			if err != nil {
				return fmt.Errorf("reading %s: %w", args[0], err)
			}
			d := drawn{File: out, Peers: len(peers), Spoilt: spoilt}
			for _, lines := range peers {
				d.Lines += len(lines)
			}
			if err := draw(out, filepath.Base(args[0]), d, peers); err != nil {
				return err
			}
			return cli.Print(d, asJSON, std)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file of the picture, .png or .svg (default: FILE.png)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was drawn as one JSON object, the last line of standard output")
	cli.TakeFile(cmd.Flags())
	return cmd
}

// drawn is the result of plot.
type drawn struct {
	File   string `json:"file"`
	Peers  int    `json:"peers"`
	Lines  int    `json:"lines"`
	Spoilt int    `json:"spoilt"`
}

// String says it in words.
func (d drawn) String() string {
	text := fmt.Sprintf("%s of %s, drawn into %s.\n", cli.Plural(uint64(d.Lines), "line"), cli.Plural(uint64(d.Peers), "peer"), d.File)
	if d.Spoilt > 0 {
		text += fmt.Sprintf("%s could not be read.\n", cli.Plural(uint64(d.Spoilt), "line"))
	}
	return text
}

// draw draws a panel of each figure that a line has, of four.
func draw(path, title string, d drawn, peers [][]Line) error {
	var panels []*plot.Plot
	for _, p := range []struct {
		title, axis string
		of          func(Line) float64
	}{
		{"Loss of the last steps", "loss", func(l Line) float64 { return float64(l.Loss) }},
		{"Accuracy on held-out data", "accuracy, %", func(l Line) float64 { return 100 * float64(l.Accuracy) }},
		{"Distance of the models, estimated", "distance", func(l Line) float64 { return float64(l.Distance) }},
		{"Sent", "MB", func(l Line) float64 { return float64(l.Bytes) / 1e6 }},
	} {
		curves, told := []compare.Curve(nil), false
		for _, lines := range peers {
			points, before, last := plotter.XYs{}, 0.0, 0.0
			for _, l := range lines {
				if l.Seconds < last { // a later life of the peer
					before += last
				}
				last = l.Seconds
				if y := p.of(l); !math.IsNaN(y) && !math.IsInf(y, 0) {
					points, told = append(points, plotter.XY{X: before + last, Y: y}), told || y != 0
				}
			}
			curves = append(curves, compare.Curve{Name: lines[0].Peer, Points: points})
		}
		if !told {
			continue
		}
		panel, err := compare.Panel(p.title, "training time, s", p.axis, curves)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", p.title, err)
		}
		if p.axis == "loss" { // curves fall below the legend
			panel.Legend.Top, panel.Legend.YOffs = true, -panel.Legend.YOffs
		}
		if len(panels) > 0 {
			panel.Legend = plot.NewLegend() // the colours are those of the first panel
		}
		panels = append(panels, panel)
	}
	if len(panels) == 0 {
		return cli.Usagef("drawing %s: its lines have no loss, accuracy, distance or bytes yet", title)
	}
	across := 1 + (len(panels)+1)%2 // one or three are below each other
	return compare.Draw(path, title, fmt.Sprintf("%d peers, %d lines", d.Peers, d.Lines), slices.Collect(slices.Chunk(panels, across)))
}

package dataset

import (
	"fmt"
	"math"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// curveSteps is the number of lines that replace one curve of an outline. A curve of a digit is a few pixels long at
// 28×28.
const curveSteps = 3

// maxMiter bounds how far a corner moves when a stroke is widened, relative to its sides.
const maxMiter = 2

// vertex is a point of an outline, in units of the digit's height and relative
// to the centre of its box, y pointing down. Moving every point by w along
// (nx, ny), which points out of the ink, widens all strokes by 2w.
type vertex struct{ x, y, nx, ny float32 }

// outline is the shape of one digit in one face: closed polygons.
type outline [][]vertex

// outlinesOf reads the digits 0 to 9 of a face.
func outlinesOf(ttf []byte) ([Classes]outline, error) {
	var digits [Classes]outline
	font, err := sfnt.Parse(ttf)
	if err != nil {
		return digits, fmt.Errorf("dataset: parsing an embedded font: %w", err)
	}
	var buf sfnt.Buffer
	for d := range digits {
		glyph, err := font.GlyphIndex(&buf, rune('0'+d))
		if err != nil {
			return digits, fmt.Errorf("dataset: finding digit %d in an embedded font: %w", d, err)
		}
		segments, err := font.LoadGlyph(&buf, glyph, fixed.I(int(font.UnitsPerEm())), nil)
		if err != nil {
			return digits, fmt.Errorf("dataset: loading digit %d of an embedded font: %w", d, err)
		}
		digits[d] = newOutline(polygons(segments))
	}
	return digits, nil
}

type point struct{ x, y float64 }

func pointOf(p fixed.Point26_6) point {
	return point{float64(p.X) / 64, float64(p.Y) / 64}
}

// polygons turns curves into lines. Go fonts have lines and quadratic curves, and no
// cubic ones.
func polygons(segments sfnt.Segments) [][]point {
	var all [][]point
	var pen point
	for _, segment := range segments {
		last := len(all) - 1
		switch segment.Op {
		case sfnt.SegmentOpMoveTo:
			pen = pointOf(segment.Args[0])
			all = append(all, []point{pen})
		case sfnt.SegmentOpLineTo:
			pen = pointOf(segment.Args[0])
			all[last] = append(all[last], pen)
		case sfnt.SegmentOpQuadTo:
			control, end := pointOf(segment.Args[0]), pointOf(segment.Args[1])
			for step := 1; step <= curveSteps; step++ {
				t := float64(step) / curveSteps
				a, b, c := (1-t)*(1-t), 2*t*(1-t), t*t
				all[last] = append(all[last], point{
					a*pen.x + b*control.x + c*end.x,
					a*pen.y + b*control.y + c*end.y,
				})
			}
			pen = end
		}
	}
	return all
}

// newOutline centres polygons, scales them to height 1 and adds the normals.
func newOutline(polygons [][]point) outline {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	area := 0.0
	for _, polygon := range polygons {
		previous := polygon[len(polygon)-1]
		for _, p := range polygon {
			low = point{min(low.x, p.x), min(low.y, p.y)}
			high = point{max(high.x, p.x), max(high.y, p.y)}
			area += previous.x*p.y - p.x*previous.y
			previous = p
		}
	}
	// Holes run in the opposite direction of outer contours, so the ink is always on the same side; the sign of the
	// total area tells which.
	side := math.Copysign(1, area)
	height := high.y - low.y
	centre := point{(low.x + high.x) / 2, (low.y + high.y) / 2}
	var out outline
	for _, polygon := range polygons {
		polygon = withoutRepeats(polygon)
		contour := make([]vertex, len(polygon))
		for i, p := range polygon {
			before := polygon[(i+len(polygon)-1)%len(polygon)]
			after := polygon[(i+1)%len(polygon)]
			n := cornerNormal(before, p, after)
			contour[i] = vertex{
				x: float32((p.x - centre.x) / height), y: float32((p.y - centre.y) / height),
				nx: float32(side * n.x), ny: float32(side * n.y),
			}
		}
		out = append(out, contour)
	}
	return out
}

// withoutRepeats removes points equal to the point before, around the end too: they give no direction.
func withoutRepeats(polygon []point) []point {
	var out []point
	for i, p := range polygon {
		if p != polygon[(i+len(polygon)-1)%len(polygon)] {
			out = append(out, p)
		}
	}
	return out
}

// cornerNormal is how far a corner moves when both its sides move by 1 to the right of the direction of travel, y
// pointing down.
func cornerNormal(before, corner, after point) point {
	n1, n2 := sideNormal(before, corner), sideNormal(corner, after)
	sum := point{n1.x + n2.x, n1.y + n2.y}
	stretch := 1 / max(1+n1.x*n2.x+n1.y*n2.y, 1e-9)
	if length := math.Hypot(sum.x, sum.y) * stretch; length > maxMiter {
		stretch *= maxMiter / length
	}
	return point{sum.x * stretch, sum.y * stretch}
}

func sideNormal(from, to point) point {
	dx, dy := to.x-from.x, to.y-from.y
	length := math.Hypot(dx, dy)
	return point{dy / length, -dx / length}
}

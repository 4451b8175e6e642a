package dataset

import (
	"image"
	"image/draw"
	"math/rand/v2"

	"golang.org/x/image/vector"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// distortion bounds how far a digit differs from its shape in the font. Each number is the end of a uniform
// distribution.
type distortion struct {
	// turn is the tangent of half the largest angle by which a digit is turned.
	turn float32
	// height is the height of a digit in pixels, plus or minus spread.
	height, spread float32
	// stretch is the change of width, as a share of it.
	stretch float32
	// shear is how far a line moves sideways relative to a line one height below, in heights.
	shear float32
	// stroke is how far each side of a stroke moves out or in, in heights.
	stroke float32
	// shift is the move along each axis, in pixels.
	shift float32
	// speckles is the largest number of stray pixels.
	speckles int
	// grain is the largest loss of a pixel's ink, in 256ths of it.
	grain int
}

// glyphDistortion is chosen so that a linear model fails (held-out accuracy near 0.8) and one hidden layer suffices
// (near 0.99). The shift makes the difference, since it separates pixels from digits. Run the tests of this package
// with -figures for the figures.
var glyphDistortion = distortion{
	turn:     0.17632698, // tan 10°, so ±20°
	height:   18,
	spread:   4,
	stretch:  0.3,
	shear:    0.3,
	stroke:   0.03,
	shift:    2.5,
	speckles: 10,
	grain:    60,
}

// pen draws digits, one at a time.
type pen struct {
	distortion distortion
	faces      [][Classes]outline
	raster     vector.Rasterizer
	mask       image.Alpha
	pcg        rand.PCG
	rng        *rand.Rand
}

func newPen(d distortion, fonts [][]byte) (*pen, error) {
	p := &pen{distortion: d}
	for _, ttf := range fonts {
		digits, err := outlinesOf(ttf)
		if err != nil {
			return nil, err
		}
		p.faces = append(p.faces, digits)
	}
	p.rng = rand.New(&p.pcg)
	return p, nil
}

// draw draws picture k of a seed in pixels, which has Side rows of Side.
func (p *pen) draw(pixels []uint8, seed, k uint64, digit uint8) {
	p.pcg.Seed(seed, seeded.Mix(k))
	shape := p.faces[p.rng.IntN(len(p.faces))][digit]
	p.trace(pixels, shape, p.placement())
	p.soil(pixels)
}

// placement maps a point (x, y) of an outline to a point of the picture, (xx·x + xy·y + x0, yx·x + yy·y + y0), after
// moving it by stroke along its normal.
type placement struct {
	xx, xy, x0 float32
	yx, yy, y0 float32
	stroke     float32
}

// placement draws a random placement: scale, then shear, then turn, then shift. A conversion rounds each product and
// prevents the compiler from fusing it with a sum: the picture is the same on every platform.
func (p *pen) placement() placement {
	d := &p.distortion
	// With t = tan(angle/2), sine and cosine are quotients of polynomials; a uniform t makes the angle uniform within
	// 1 %.
	t := p.around(0, d.turn)
	tt := float32(t * t)
	cos, sin := (1-tt)/(1+tt), 2*t/(1+tt)
	height := p.around(d.height, d.spread)
	width := float32(height * p.around(1, d.stretch))
	shear := p.around(0, d.shear)
	return placement{
		xx:     cos * width,
		xy:     (float32(cos*shear) - sin) * height,
		x0:     p.around(Side/2, d.shift),
		yx:     sin * width,
		yy:     (float32(sin*shear) + cos) * height,
		y0:     p.around(Side/2, d.shift),
		stroke: p.around(0, d.stroke),
	}
}

// around is uniform in middle ± spread.
func (p *pen) around(middle, spread float32) float32 {
	return middle + float32(spread*(2*p.rng.Float32()-1))
}

// trace fills the placed outline. Products are converted as in placement.
func (p *pen) trace(pixels []uint8, shape outline, at placement) {
	p.raster.Reset(Side, Side)
	for _, contour := range shape {
		for i, v := range contour {
			x := v.x + float32(at.stroke*v.nx)
			y := v.y + float32(at.stroke*v.ny)
			px := float32(at.xx*x) + float32(at.xy*y) + at.x0
			py := float32(at.yx*x) + float32(at.yy*y) + at.y0
			if i == 0 {
				p.raster.MoveTo(px, py)
			} else {
				p.raster.LineTo(px, py)
			}
		}
		p.raster.ClosePath()
	}
	p.raster.DrawOp = draw.Src
	p.mask = image.Alpha{Pix: pixels, Stride: Side, Rect: image.Rect(0, 0, Side, Side)}
	p.raster.Draw(&p.mask, p.mask.Rect, image.Opaque, image.Point{})
}

// soil removes ink at random and adds speckles. The rest of the background stays empty, as on a scanned page.
func (p *pen) soil(pixels []uint8) {
	d := &p.distortion
	for i, ink := range pixels {
		if ink != 0 {
			pixels[i] = ink - uint8(int(ink)*p.rng.IntN(d.grain+1)/256)
		}
	}
	for range p.rng.IntN(d.speckles + 1) {
		pixels[p.rng.IntN(len(pixels))] = uint8(p.rng.IntN(256))
	}
}

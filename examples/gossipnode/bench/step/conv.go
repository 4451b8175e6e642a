package step

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// taps is the number of pixels under a 3×3 kernel.
const taps = 9

// addConvolution adds a 3×3 convolution with padding, a ReLU and a 2×2 pool. It returns the shape of the output.
func (g *gonumNet) addConvolution(at offsets, in dataset.Shape, channels, batch int) dataset.Shape {
	c := &gonumConvolution{offsets: at, in: in, out: channels, rows: batch * in.Height * in.Width}
	c.columns, c.below = make([]float32, c.rows*taps*in.Channels), make([]float32, c.rows*in.Channels)
	c.errors, c.y = make([]float32, len(c.columns)), make([]float32, c.rows*channels)
	p := &gonumPool{in: dataset.Shape{Height: in.Height, Width: in.Width, Channels: channels}}
	out := dataset.Shape{Height: in.Height / 2, Width: in.Width / 2, Channels: channels}
	p.y, p.below = make([]float32, batch*out.Values()), make([]float32, len(c.y))
	p.from = make([]int, len(p.y))
	g.layers = append(g.layers, c, &gonumRectifier{}, p)
	return out
}

// gonumConvolution multiplies a matrix with the weights. The matrix has a row for each pixel, with the 3×3 pixels
// around it (im2col). Pixels outside of the picture stay zero: no tap writes them.
type gonumConvolution struct {
	offsets
	in              dataset.Shape
	out, rows       int
	columns, errors []float32
	y, below        []float32
}

func (c *gonumConvolution) forward(params, x []float32) []float32 {
	c.eachTap(func(pixel, column int) {
		for i, v := range x[pixel : pixel+c.in.Channels] {
			c.columns[column+i*taps] = v
		}
	})
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, c.matrix(c.columns), c.weights(params), 0, blasMatrix(c.rows, c.out, c.y))
	addToRows(c.y, params[c.bias:c.bias+c.out])
	return c.y
}

func (c *gonumConvolution) backward(params, grad, errors []float32, wanted bool) []float32 {
	e := blasMatrix(c.rows, c.out, errors)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, e, c.matrix(c.columns), 0, c.weights(grad))
	sumOfRows(errors, grad[c.bias:c.bias+c.out])
	if !wanted {
		return nil
	}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, e, c.weights(params), 0, c.matrix(c.errors))
	clear(c.below)
	c.eachTap(func(pixel, column int) {
		for i := range c.in.Channels {
			c.below[pixel+i] += c.errors[column+i*taps]
		}
	})
	return c.below
}

func (c *gonumConvolution) matrix(v []float32) blas32.General {
	return blasMatrix(c.rows, taps*c.in.Channels, v)
}

func (c *gonumConvolution) weights(v []float32) blas32.General {
	n := taps * c.in.Channels
	return blasMatrix(c.out, n, v[c.weight:c.weight+n*c.out])
}

// eachTap calls do for each tap of each pixel that is in the picture, with the offset of the pixel in the input, and
// the offset of its first channel's copy in the columns, where the taps of a channel are side by side.
func (c *gonumConvolution) eachTap(do func(pixel, column int)) {
	height, width, channels := c.in.Height, c.in.Width, c.in.Channels
	for row := range c.rows {
		picture, y, x := row/(height*width), row/width%height, row%width
		for tap := range taps {
			ty, tx := y+tap/3-1, x+tap%3-1
			if ty >= 0 && ty < height && tx >= 0 && tx < width {
				do(((picture*height+ty)*width+tx)*channels, row*taps*channels+tap)
			}
		}
	}
}

// gonumFlatten orders pictures channel by channel, as torch's weights need it.
type gonumFlatten struct {
	pixels, channels int
	y, below         []float32
}

func newGonumFlatten(batch, pixels, channels int) *gonumFlatten {
	n := batch * pixels * channels
	return &gonumFlatten{pixels: pixels, channels: channels, y: make([]float32, n), below: make([]float32, n)}
}

func (f *gonumFlatten) forward(_, x []float32) []float32 {
	return turned(f.y, x, f.pixels, f.channels)
}

func (f *gonumFlatten) backward(_, _, errors []float32, _ bool) []float32 {
	return turned(f.below, errors, f.channels, f.pixels)
}

// turned writes matrices with rows and columns exchanged to out.
func turned(out, x []float32, rows, cols int) []float32 {
	for from := 0; from < len(x); from += rows * cols {
		for row := range rows {
			for col := range cols {
				out[from+col*rows+row] = x[from+row*cols+col]
			}
		}
	}
	return out
}

// gonumPool takes the largest of 2×2 pixels, the first of several; it ignores an odd last row or column.
type gonumPool struct {
	in       dataset.Shape
	y, below []float32
	from     []int // index in the input of each value of y
}

func (p *gonumPool) forward(_, x []float32) []float32 {
	width, channels := p.in.Width, p.in.Channels
	i := 0
	for top := 0; top < len(x); top += p.in.Values() {
		for row := range p.in.Height / 2 {
			for column := range width / 2 {
				corner := top + (2*row*width+2*column)*channels
				for channel := range channels {
					p.from[i] = largest(x, corner+channel, channels, width*channels)
					p.y[i] = x[p.from[i]]
					i++
				}
			}
		}
	}
	return p.y
}

// largest returns the offset of the largest of four values: at corner, to its right, below, and below to the right.
func largest(x []float32, corner, right, below int) int {
	best := corner
	for _, i := range [...]int{corner + right, corner + below, corner + below + right} {
		if x[i] > x[best] {
			best = i
		}
	}
	return best
}

func (p *gonumPool) backward(_, _, errors []float32, _ bool) []float32 {
	clear(p.below)
	for i, from := range p.from {
		p.below[from] += errors[i]
	}
	return p.below
}

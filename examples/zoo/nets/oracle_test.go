package nets

import (
	"math"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/tensor"
)

// oracle computes the models one number at a time in float64, from parameters by
// name.
type oracle map[string][]float64

// newOracle names a copy of the parameters.
func newOracle(layout *tensor.Layout, params tensor.Vector) oracle {
	o := oracle{}
	for _, r := range layout.Ranges() {
		o[r.Name] = widened(params[r.Offset : r.Offset+r.Len])
	}
	return o
}

func widened(v tensor.Vector) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// plane is a picture, or what a layer made of it.
type plane struct {
	h, w, c int
	v       []float64
}

func newPlane(h, w, c int) plane { return plane{h, w, c, make([]float64, h*w*c)} }

// at is zero outside.
func (p plane) at(y, x, c int) float64 {
	if y < 0 || y >= p.h || x < 0 || x >= p.w {
		return 0
	}
	return p.v[(y*p.w+x)*p.c+c]
}

// each makes a plane from the value of every place.
func each(h, w, c int, f func(y, x, c int) float64) plane {
	out := newPlane(h, w, c)
	for y := range h {
		for x := range w {
			for k := range c {
				out.v[(y*w+x)*c+k] = f(y, x, k)
			}
		}
	}
	return out
}

// conv is a convolution over 3×3 pixels with zeros around, by weights in torch's order.
func (o oracle) conv(p plane, name string, stride int) plane {
	w := o[name]
	out := len(w) / (9 * p.c)
	return each((p.h+stride-1)/stride, (p.w+stride-1)/stride, out, func(y, x, k int) float64 {
		sum := 0.0
		for dy := range 3 {
			for dx := range 3 {
				for c := range p.c {
					sum += p.at(y*stride+dy-1, x*stride+dx-1, c) * w[((k*p.c+c)*3+dy)*3+dx]
				}
			}
		}
		return sum
	})
}

// depthwise is a convolution of every channel by itself.
func (o oracle) depthwise(p plane, name string, stride int) plane {
	w := o[name]
	return each((p.h+stride-1)/stride, (p.w+stride-1)/stride, p.c, func(y, x, c int) float64 {
		sum := 0.0
		for dy := range 3 {
			for dx := range 3 {
				sum += p.at(y*stride+dy-1, x*stride+dx-1, c) * w[(c*3+dy)*3+dx]
			}
		}
		return sum
	})
}

// pointwise is a convolution over single pixels.
func (o oracle) pointwise(p plane, name string) plane {
	w := o[name]
	to := newPlane(p.h, p.w, len(w)/p.c)
	for i, v := range p.v {
		pixel, c := i/p.c, i%p.c
		for k := range to.c {
			to.v[pixel*to.c+k] += v * w[k*p.c+c]
		}
	}
	return to
}

func (o oracle) bias(p plane, name string) plane {
	return each(p.h, p.w, p.c, func(y, x, c int) float64 { return p.at(y, x, c) + o[name][c] })
}

func rectify(p plane) plane {
	return each(p.h, p.w, p.c, func(y, x, c int) float64 { return max(p.at(y, x, c), 0) })
}

func added(p, q plane) plane {
	return each(p.h, p.w, p.c, func(y, x, c int) float64 { return p.at(y, x, c) + q.at(y, x, c) })
}

func halve(p plane) plane {
	return each(p.h/2, p.w/2, p.c, func(y, x, c int) float64 {
		return max(p.at(2*y, 2*x, c), p.at(2*y, 2*x+1, c), p.at(2*y+1, 2*x, c), p.at(2*y+1, 2*x+1, c))
	})
}

// norm gives each group of channels mean 0 and variance 1 over the plane, then
// scales and shifts each channel.
func (o oracle) norm(p plane, name string, groups int) plane {
	size := p.c / groups
	mean, deviation := make([]float64, groups), make([]float64, groups)
	for g := range groups {
		sum, squares, n := 0.0, 0.0, float64(p.h*p.w*size)
		for i, v := range p.v {
			if i%p.c/size == g {
				sum += v
			}
		}
		mean[g] = sum / n
		for i, v := range p.v {
			if i%p.c/size == g {
				squares += (v - mean[g]) * (v - mean[g])
			}
		}
		deviation[g] = math.Sqrt(squares/n + 1e-5)
	}
	scale, shift := o[name+".weight"], o[name+".bias"]
	return each(p.h, p.w, p.c, func(y, x, c int) float64 {
		return (p.at(y, x, c)-mean[c/size])/deviation[c/size]*scale[c] + shift[c]
	})
}

func averaged(p plane) plane {
	return each(1, 1, p.c, func(_, _, c int) float64 {
		sum := 0.0
		for i := c; i < len(p.v); i += p.c {
			sum += p.v[i]
		}
		return sum / float64(p.h*p.w)
	})
}

func (o oracle) dense(p plane, name string) plane {
	flat := newPlane(1, 1, len(p.v)) // channel by channel, as torch has pictures
	for i, v := range p.v {
		flat.v[i%p.c*p.h*p.w+i/p.c] = v
	}
	return o.bias(o.pointwise(flat, name+".weight"), name+".bias")
}

// loss is the mean cross entropy over the batch of the logits that model computes.
func (o oracle) loss(model func(oracle, plane) plane, batch *dataset.Batch, shape dataset.Shape) float64 {
	sum := 0.0
	for i, label := range batch.Labels {
		x := widened(batch.X[i*shape.Values() : (i+1)*shape.Values()])
		logits := model(o, plane{shape.Height, shape.Width, shape.Channels, x}).v
		total := 0.0
		for _, v := range logits {
			total += math.Exp(v)
		}
		sum += math.Log(total) - logits[label]
	}
	return sum / float64(batch.Len())
}

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"github.com/mmcloughlin/avo/gotypes"
)

// kernel is one function to generate, in assembly and for the choice.
type kernel struct {
	name   string // of the function that chooses; its twin is nameGo
	params []param
	counts int    // index of the slice whose length counts the values; none if negative
	result string // the result types; empty if there are none
	merge  merge  // how results of pieces combine, if there are any
	body   func(r *routine)
	// overwrites is for a kernel that writes its first slice without reading it:
	// large ones are written past the cache, which spares reading them.
	overwrites bool
}

// param is one parameter. Slices have bytes per value; other parameters have 0.
type param struct {
	name, kind string
	bytes      int
}

const (
	floatsKind = "[]float32"
	bytesKind  = "[]byte"
)

// elements is how many of the slice's elements make a value.
func (p param) elements() int {
	if p.kind == bytesKind {
		return p.bytes
	}
	return 1
}

func floats(name string) param           { return param{name, floatsKind, floatSize} }
func float64s(name string) param         { return param{name, "[]float64", doubleSize} }
func codes(name string, bytes int) param { return param{name, bytesKind, bytes} }
func other(name, kind string) param      { return param{name, kind, 0} }

func kernels() []kernel {
	dst, x, y := floats("dst"), floats("x"), floats("y")
	grad, delta := floats("grad"), floats("delta")
	a, w := other("a", "float32"), other("w", "float32")
	half := codes("code", halfSize)
	momentum := []param{delta, floats("velocity"), grad, x, other("c", "Momentum")}
	adam := []param{delta, floats("mean"), floats("square"), grad, x, other("c", "AdamW")}
	lion := []param{delta, floats("mean"), grad, x, other("c", "Lion")}
	return []kernel{
		{name: "add", params: []param{dst, x}, body: add},
		{name: "sub", params: []param{dst, x}, body: sub},
		{name: "mul", params: []param{dst, x}, body: mul},
		{name: "axpy", params: []param{dst, a, x}, body: axpy},
		{name: "scale", params: []param{dst, a}, body: scale},
		{name: "scaledDifference", params: []param{dst, w, x, y}, body: scaledDifference, overwrites: true},

		{name: "sumSquares", params: []param{x}, result: "float64", merge: mergeSum, body: sumSquares},
		{name: "squaredDistance", params: []param{x, y}, result: "float64", merge: mergeSum, body: squaredDistance},
		{name: "scaledDistance", params: []param{dst, w, x, y}, result: "float64", merge: mergeSum, body: scaledDistance},
		{name: "maxAbs", params: []param{x}, result: "float32", merge: mergeMax, body: maxAbs},
		{name: "finite", params: []param{x}, result: "bool", merge: mergeAll, body: finite},

		{name: "bf16Encode", params: []param{codes("dst", halfSize), x}, counts: 1, body: bf16Encode, overwrites: true},
		{name: "bf16Decode", params: []param{dst, half}, body: bf16Decode, overwrites: true},
		{name: "fp16Decode", params: []param{dst, half}, body: fp16Decode, overwrites: true},
		{name: "bf16Finite", params: []param{half}, result: "bool", merge: mergeAll, body: bf16Finite},
		{name: "float32Finite", params: []param{codes("code", floatSize)}, result: "bool", merge: mergeAll, body: float32Finite},

		{name: "rectify", params: []param{dst}, body: rectify},
		{name: "rectifyGradient", params: []param{grad, x}, body: rectifyGradient},
		{name: "relu6", params: []param{dst, x}, body: relu6},
		{name: "relu6Gradient", params: []param{grad, x}, body: relu6Gradient},

		{name: "momentumStep", params: momentum, body: momentumStep},
		{name: "nesterovStep", params: momentum, body: nesterovStep},
		{name: "adamWStep", params: adam, body: adamWStep},
		{name: "exp", params: []param{dst, x}, body: curve(exp)},
		{name: "gelu", params: []param{dst, x}, body: gelu},
		{name: "silu", params: []param{dst, x}, body: curve(silu)},
		{name: "sigmoid", params: []param{dst, x}, body: curve(sigmoid)},
		{name: "tanh", params: []param{dst, x}, body: curve(tanh)},
		{name: "geluGradient", params: []param{grad, x}, body: geluGradient},
		{name: "siluGradient", params: []param{grad, x}, body: slope(siluGradient)},
		{name: "sigmoidGradient", params: []param{grad, x}, body: slope(sigmoidGradient)},
		{name: "tanhGradient", params: []param{grad, x}, body: slope(tanhGradient)},

		{name: "lionStep", params: lion, body: lionStep},
	}
}

// pictureKernels are the kernels of package internal/ops that walk through pictures
// in loops of their own.
func pictureKernels() []kernel {
	w, x, y := floats("w"), floats("x"), floats("y")
	c, grid, rows := other("c", "windows"), other("c", "grid"), other("rows", "int")
	dst, row, places := floats("dst"), floats("row"), codes("places", 1)
	sum, product := float64s("sum"), float64s("product")
	list := []kernel{
		{name: "convolve16", params: []param{y, x, w, c}, body: convolve(16)},
		{name: "convolve8", params: []param{y, x, w, c}, body: convolve(8)},
		{name: "convolveGradient16", params: []param{w, x, y, c}, body: convolveGradient(16)},
		{name: "convolveGradient8", params: []param{w, x, y, c}, body: convolveGradient(8)},
		{name: "depthwise", params: []param{y, x, w, grid}, body: depthwise},
		{name: "depthwiseGradient", params: []param{w, x, y, grid}, body: depthwiseGradient},
		{name: "maxPool", params: []param{dst, x, grid}, body: maxPool(false)},
		{name: "maxPoolPlaces", params: []param{dst, places, x, grid}, body: maxPool(true)},
		{name: "maxPoolGradient", params: []param{dst, places, x, grid}, body: maxPoolGradient},

		{name: "addRows", params: []param{x, row, rows}, body: addRows},
		{name: "addRowsRectify", params: []param{x, row, rows}, body: addRowsRectify},
		{name: "scaleRows", params: []param{dst, x, floats("scale"), floats("shift"), rows}, body: scaleRows(false)},
		{name: "scaleRowsRectify", params: []param{dst, x, floats("scale"), floats("shift"), rows}, body: scaleRows(true)},
		{name: "combineRows", params: []param{dst, x, y, floats("a"), floats("b"), floats("shift"), rows}, body: combineRows},
		{name: "sumRows", params: []param{floats("sum"), x, rows}, body: sumRows},
		{name: "sumSquareRows", params: []param{sum, product, x, rows}, body: sumSquareRows},
		{name: "sumProductRows", params: []param{sum, product, x, y, rows}, body: sumProductRows},
	}
	for i := range list {
		list[i].counts = -1
	}
	return list
}

// rowKernels are the kernels that sum along rows.
func rowKernels() []kernel {
	dst, x, y, grad := floats("dst"), floats("x"), floats("y"), floats("grad")
	mean, inverse := floats("mean"), floats("inverse")
	scale, shift, rows := floats("scale"), floats("shift"), other("rows", "int")
	of := []param{rows, other("n", "int"), other("kept", "int"), other("factor", "float32")}
	list := []kernel{
		{name: "softmaxRows", params: append([]param{x, float64s("stats")}, append(of, other("scale", "float32"))...), body: softmaxRows},
		{name: "softmaxRowsGradient", params: append([]param{grad, floats("p")}, of...), body: softmaxRowsGradient},
		{name: "addRowsGELU", params: []param{x, floats("slope"), floats("row"), rows}, body: addRowsGELU},
		{name: "layerNorm", params: []param{dst, mean, inverse, x, scale, shift, other("epsilon", "float32"), rows}, body: layerNorm},
		{name: "layerNormGradient", params: []param{dst, mean, inverse, grad, x, scale, rows}, body: layerNormGradient},
		{name: "layerNormSums", params: []param{floats("scaleGrad"), floats("shiftGrad"), mean, inverse, y, x, rows}, body: layerNormSums},
	}
	for i := range list {
		list[i].counts = -1
	}
	return list
}

// coefficients repeats the types of package kernel that kernels take; go vet
// compares the layout that follows from it with the real one.
const coefficients = `package kernel
type Momentum struct{ Rate, Momentum, Decay float32 }
type AdamW struct {
	Rate, Beta1, Beta2, OneMinus1, OneMinus2, Correction1, Correction2, Epsilon, Decay float32
}
type Lion struct{ Rate, Beta1, OneMinus1, Beta2, OneMinus2, Decay float32 }
type windows struct {
	rows, cols, taps, lineNext, xPixel, xNext, yPixel, yNext int
	runs [13]int
}
type grid struct {
	rows, cols, channels, line, lineNext, xPixel, xNext, yNext int
	runs [7]int
}`

// list is the parameters as Go writes them.
func (k kernel) list() string {
	var b strings.Builder
	for i, p := range k.params {
		b.WriteString(p.name)
		if last := i == len(k.params)-1; last || p.kind != k.params[i+1].kind {
			b.WriteString(" " + p.kind)
			if last {
				break
			}
		}
		b.WriteString(", ")
	}
	return b.String()
}

func (k kernel) signature() (*gotypes.Signature, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "coefficients.go", coefficients, 0)
	if err != nil {
		return nil, err
	}
	pkg, err := new(types.Config).Check("kernel", files, []*ast.File{file}, nil)
	if err != nil {
		return nil, err
	}
	return gotypes.ParseSignatureInPackage(pkg, "func("+k.list()+") "+k.result)
}

func (k kernel) Name() string { return k.name }

func (k kernel) List() string { return k.list() }

func (k kernel) Result() string { return k.result }

func (k kernel) Merge() merge { return k.merge }

// Length is the number of values, as an expression.
func (k kernel) Length() string {
	p := k.params[k.counts]
	if per := p.elements(); per > 1 {
		return fmt.Sprintf("len(%s)/%d", p.name, per)
	}
	return fmt.Sprintf("len(%s)", p.name)
}

// Overwrites is whether there are routines that write past the cache.
func (k kernel) Overwrites() bool { return k.overwrites }

// Take is the statement that works on the next n values at a level.
func (k kernel) Take(level string) string {
	return fmt.Sprintf(cmp.Or(k.merge.Take, "%s"), k.Call(level, true))
}

// TakePast is Take past the cache.
func (k kernel) TakePast(level string) string { return k.Take(pastSuffix + level) }

// Call is a call at a level, on the whole slices or on their next n values.
func (k kernel) Call(level string, piece bool) string {
	var args []string
	for _, p := range k.params {
		if piece && p.bytes > 0 {
			args = append(args, fmt.Sprintf("%s[:%s]", p.name, scaled(p)))
		} else {
			args = append(args, p.name)
		}
	}
	return fmt.Sprintf("%s%s(%s)", k.name, level, strings.Join(args, ", "))
}

// Advance drops the n values that are done.
func (k kernel) Advance() string {
	var names, rest []string
	for _, p := range k.params {
		if p.bytes > 0 {
			names = append(names, p.name)
			rest = append(rest, fmt.Sprintf("%s[%s:]", p.name, scaled(p)))
		}
	}
	return strings.Join(names, ", ") + " = " + strings.Join(rest, ", ")
}

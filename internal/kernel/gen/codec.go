package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"text/template"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
)

// The kernels of codecs go to files of their own. Some work on slices of any length
// like all others; those of blocks work on one whole block, and leave shorter ones
// to their twins.

func codecKernels() []kernel {
	dst, x, half := floats("dst"), floats("x"), codes("code", halfSize)
	return []kernel{
		{name: "fp16Encode", params: []param{codes("dst", halfSize), x}, counts: 1, body: fp16Encode, overwrites: true},
		{name: "fp16Add", params: []param{dst, half}, body: fp16Add},
		{name: "fp16Sub", params: []param{dst, half}, body: fp16Sub},
		{name: "fp16Finite", params: []param{half}, result: "bool", merge: mergeAll, body: fp16Finite},
	}
}

// blockKernels are those whose slice of index counts must be a whole block.
func blockKernels() []kernel {
	bytesOf := func(name string) param { return codes(name, 1) }
	x, inverse := floats("x"), other("inverse", "float32")
	decoding := func(high ...param) []param {
		list := append([]param{floats("dst"), bytesOf("low")}, high...)
		return append(list, floats("reference"), other("spacing", "float32"), inverse, other("half", "uint32"), other("mask", "uint32"))
	}
	const sums, differences = "(sum uint32)", "(sum uint32, peak, squares float32)"
	bits := other("bits", "int")
	stepping := []param{floats("dst"), bytesOf("steps"), other("step", "float32")}
	return []kernel{
		{name: "packBits", params: []param{bytesOf("code"), bytesOf("values"), bits}, counts: 1, body: packBits},
		{name: "unpackBits", params: []param{bytesOf("values"), bytesOf("code"), bits}, body: unpackBits},
		{name: "unpackSteps", params: []param{bytesOf("values"), bytesOf("code"), bits}, body: unpackSteps},
		{name: "latticeIndices", params: []param{bytesOf("low"), x, inverse}, counts: 1, result: "(sum uint32, most float32)", body: latticeIndices},
		{name: "latticeHigh", params: []param{bytesOf("high"), x, inverse}, counts: 1, body: latticeHigh},
		{name: "latticeValues", params: decoding(), result: sums, body: latticeDecoder{}.emit},
		{name: "latticeValuesWide", params: decoding(bytesOf("high")), result: sums, body: latticeDecoder{wide: true}.emit},
		{name: "latticeDifference", params: decoding(), result: differences, body: latticeDecoder{difference: true}.emit},
		{name: "latticeDifferenceWide", params: decoding(bytesOf("high")), result: differences, body: latticeDecoder{wide: true, difference: true}.emit},
		{name: "quantizeSteps", params: []param{bytesOf("steps"), x, inverse}, counts: 1, result: "(squares uint32)", body: quantizeSteps},
		{name: "quantizeSteps4", params: []param{bytesOf("code"), x, inverse}, counts: 1, result: "(squares uint32)", body: quantizeSteps4},
		{name: "signsOf", params: []param{bytesOf("signs"), x}, counts: 1, body: signsOf},
		{name: "sumAbs", params: []param{x}, result: "float64", body: sumAbs},
		{name: "stepsDecode", params: stepping, body: stepsDecode},
		{name: "stepsAdd", params: stepping, body: stepsAdd},
		{name: "stepSquares", params: []param{bytesOf("steps")}, result: "(squares uint32)", body: stepSquares},
	}
}

func addCodecs(files map[string][]byte) error {
	for _, l := range levels() {
		assembly, stubs, err := l.compileCodecs()
		if err != nil {
			return err
		}
		files["codec_"+l.file+"_amd64.s"] = assembly
		files["codec_"+l.file+"_amd64_gen.go"] = stubs
	}
	for name, text := range map[string]string{
		"codec_choice_amd64_gen.go": codecChoiceText,
		"codec_choice_plain_gen.go": plainText,
	} {
		t, err := template.New(name).Parse(text)
		if err != nil {
			return err
		}
		data := map[string]any{"Warning": printing().GeneratedWarning(), "Kernels": codecKernels(), "Blocks": blockKernels(), "Levels": wideFirst()}
		if name == "codec_choice_plain_gen.go" {
			data["Kernels"] = append(codecKernels(), blockKernels()...)
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		if files[name], err = format.Source(b.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (l level) compileCodecs() (assembly, stubs []byte, err error) {
	context := build.NewContext()
	context.ConstraintExpr(constraint)
	for _, k := range codecKernels() {
		if err := l.emit(context, k, false); err != nil {
			return nil, nil, fmt.Errorf("kernel %s: %w", k.name, err)
		}
		if k.overwrites {
			if err := l.emit(context, k, true); err != nil {
				return nil, nil, fmt.Errorf("kernel %s past the cache: %w", k.name, err)
			}
		}
	}
	for _, k := range blockKernels() {
		if err := l.emitBlock(context, k); err != nil {
			return nil, nil, fmt.Errorf("kernel %s: %w", k.name, err)
		}
	}
	return printed(context)
}

func (l level) emitBlock(context *build.Context, k kernel) error {
	signature, err := k.signature()
	if err != nil {
		return err
	}
	context.Function(k.name + l.name)
	context.Attributes(attr.NOSPLIT)
	context.Pragma("noescape")
	context.Doc(fmt.Sprintf("%s%s is %sGo of a whole block in %s instructions.", k.name, l.name, k.name, l.name))
	context.Signature(signature)
	r := &routine{Context: context, level: l}
	for _, p := range k.params {
		if p.bytes > 0 {
			s := &stream{name: p.name, next: r.GP64(), size: p.bytes}
			r.Load(r.Param(p.name).Base(), s.next)
			r.streams = append(r.streams, s)
		}
	}
	k.body(r)
	return errors.Join(r.faults...)
}

const codecChoiceText = `// {{.Warning}}

//go:build amd64 && !purego

package kernel
` + choiceLoops + `{{range $k := .Blocks}}
func {{.Name}}({{.List}}) {{.Result}} {
	if {{.Length}} == Block {
		switch level {
		{{range $.Levels}}case level{{.}}:
			{{if $k.Result}}return {{end}}{{$k.Call . false}}
			{{if not $k.Result}}return
		{{end}}{{end}}}
	}
	{{if .Result}}return {{end}}{{.Call "Go" false}}
}
{{end}}`

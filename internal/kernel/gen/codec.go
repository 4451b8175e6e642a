package main

import (
	"bytes"
	"fmt"
	"go/format"
	"text/template"
)

// The kernels of codecs go to files of their own. Some work on slices of any length
// like all others; those of blocks work on one whole block, and leave shorter ones
// to their twins.

func codecKernels() []kernel {
	x, half := floats("x"), codes("code", halfSize)
	return []kernel{
		{name: "fp16Encode", params: []param{codes("dst", halfSize), x}, counts: 1, body: fp16Encode, overwrites: true},
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

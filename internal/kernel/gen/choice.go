package main

import (
	"bytes"
	"fmt"
	"go/format"
	"text/template"
)

// merge is how a kernel's result for a slice comes from those for its pieces:
// statements of Go before the loop, for one piece (%s is the call), and after
// it, and the value in the end.
type merge struct{ Before, Take, After, Give string }

var (
	mergeSum = merge{Before: "total := 0.0", Take: "total += %s", Give: "total"}
	mergeMax = merge{Before: "most := float32(0)", Take: "most = max(most, %s)", Give: "most"}
	mergeAll = merge{Before: "ok := true", Take: "ok = %s", After: "if !ok { return false }", Give: "true"}
)

// addChoice adds the files that define the kernels without a suffix: by level
// on amd64, and as their twins elsewhere.
func addChoice(files map[string][]byte, list []kernel) error {
	return addTemplates(files, list, map[string]string{
		"choice_amd64_gen.go": choiceText,
		"choice_plain_gen.go": plainText,
	})
}

// addWholeChoice does the same for kernels whose work is one call's, in files whose names
// begin with prefix.
func addWholeChoice(files map[string][]byte, prefix string, list []kernel) error {
	return addTemplates(files, list, map[string]string{
		prefix + "choice_amd64_gen.go": wholeText,
		prefix + "choice_plain_gen.go": plainText,
	})
}

func addTemplates(files map[string][]byte, list []kernel, texts map[string]string) error {
	for name, text := range texts {
		t, err := template.New(name).Parse(text)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		data := map[string]any{"Warning": printing().GeneratedWarning(), "Kernels": list, "Levels": wideFirst(), "Piece": piece}
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		if files[name], err = format.Source(b.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// wideFirst is the names of the levels, the best one first.
func wideFirst() []string {
	var names []string
	for _, l := range levels() {
		names = append([]string{l.name}, names...)
	}
	return names
}

// The methods below are what the templates ask of a kernel.

// scaled is the number of a slice's elements in n values.
func scaled(p param) string {
	if per := p.elements(); per > 1 {
		return fmt.Sprintf("%d*n", per)
	}
	return "n"
}

const choiceText = `// {{.Warning}}

//go:build amd64 && !purego

package kernel

// piece is how many values one call of assembly works on: the scheduler cannot
// interrupt it, and the garbage collector has all goroutines wait for the last
// one. A few slices of 250 KB keep that near a tenth of a millisecond.
const piece = {{.Piece}}

// pastCache is the number of values from which those that are written are more
// than caches keep, so that writing them past the cache takes nothing from it.
const pastCache = 1 << 22
` + choiceLoops

const choiceLoops = `{{range $k := .Kernels}}
func {{.Name}}({{.List}}) {{.Result}} {
	{{.Merge.Before}}{{if .Overwrites}}past := {{.Length}} >= pastCache{{end}}
	for {
		n := min({{.Length}}, piece)
		switch level {
		{{range $.Levels}}case level{{.}}:
			{{if $k.Overwrites}}if past {
				{{$k.TakePast .}}
			} else {
				{{$k.Take .}}
			}{{else}}{{$k.Take .}}{{end}}
		{{end}}default:
			{{.Take "Go"}}
		}
		{{.Merge.After}}
		if n == {{.Length}} {
			return {{.Merge.Give}}
		}
		{{.Advance}}
	}
}
{{end}}`

const wholeText = `// {{.Warning}}

//go:build amd64 && !purego

package kernel
{{range $k := .Kernels}}
func {{.Name}}({{.List}}) {{.Result}} {
	switch level {
	{{range $.Levels}}case level{{.}}:
		{{$k.Call . false}}
	{{end}}default:
		{{.Call "Go" false}}
	}
}
{{end}}`

const plainText = `// {{.Warning}}

//go:build !amd64 || purego

package kernel
{{range .Kernels}}
func {{.Name}}({{.List}}) {{.Result}} {
	{{if .Result}}return {{end}}{{.Call "Go" false}}
}
{{end}}`

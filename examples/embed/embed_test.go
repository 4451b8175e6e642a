package main

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// between returns the lines after a line that contains first and before one that
// contains last, without their common indentation.
func between(t *testing.T, text, first, last string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, first)
	if ok {
		_, after, ok = strings.Cut(after, "\n")
	}
	body, _, end := strings.Cut(after, last)
	if !ok || !end {
		t.Fatalf("no lines between %q and %q", first, last)
	}
	body = body[:strings.LastIndexByte(body, '\n')+1]
	indent := body[:len(body)-len(strings.TrimLeft(body, "\t"))]
	var out strings.Builder
	for line := range strings.Lines(body) {
		out.WriteString(strings.TrimPrefix(line, indent))
	}
	return out.String()
}

func TestReadmeShowsTheseLines(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := between(t, string(readme), "```go", "```")
	run := between(t, string(source), "// The README shows these lines.", "// Until here.")
	if shown != run {
		t.Errorf("README.md shows:\n%s\nexamples/embed runs:\n%s", shown, run)
	}
	if n := strings.Count(run, "\n"); n > 10 {
		t.Errorf("%d lines, want at most ten", n)
	}
}

// TestServiceTrains runs the lines with a model so small that it takes no time.
func TestServiceTrains(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{3}})
	if err != nil {
		t.Fatal(err)
	}
	trained, err := train(t.Context(), tensor.NewParams(layout), nil, 300, func(x, grad tensor.Vector) (peer.Result, error) {
		for i := range x {
			grad[i] = x[i] - 1
		}
		return peer.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range trained {
		if v < 0.9 || v > 1.1 {
			t.Errorf("value %d is %g, want 1", i, v)
		}
	}
}

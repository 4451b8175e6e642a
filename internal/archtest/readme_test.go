package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// shown are the blocks of Go and Python in a document.
var shown = regexp.MustCompile("(?ms)^```(?:go|python)\n(.*?)^```")

// maxReadme is how many lines the first page may have.
const maxReadme = 120

// TestReadmeShowsWhatRuns: each of its blocks of Go and Python stands in examples, line by line, where a test runs it.
func TestReadmeShowsWhatRuns(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(path.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n > maxReadme {
		t.Errorf("README.md has %d lines, at most %d: it is a page, and what needs more is in docs", n, maxReadme)
	}
	blocks := shown.FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 3 {
		t.Errorf("README.md has %d blocks of Go and Python, want one for each of three products", len(blocks))
	}
	for _, b := range blocks {
		if want := unindented(b[1]); !standsIn(t, os.DirFS(path.Join(root, "examples")), want) {
			t.Errorf("README.md shows what stands nowhere in examples:\n%s", want)
		}
	}
}

// standsIn tells whether a program of Go or a README of examples has these lines, however they are indented.
func standsIn(t *testing.T, examples fs.FS, lines string) (found bool) {
	t.Helper()
	err := fs.WalkDir(examples, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) != "main.go" && path.Base(name) != "README.md" {
			return err
		}
		text, err := fs.ReadFile(examples, name)
		found = found || strings.Contains(unindented(string(text)), lines)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func unindented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimLeft(line, " \t"))
	}
	return out.String()
}

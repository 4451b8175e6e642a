package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// source is one parsed file of the module.
type source struct {
	folder string // of the package, relative to the module, "." for its root
	name   string // of the file
	lines  int
	files  *token.FileSet
	syntax *ast.File
}

func (s *source) isTest() bool      { return strings.HasSuffix(s.name, "_test.go") }
func (s *source) isGenerated() bool { return strings.HasSuffix(s.name, "_gen.go") }

// path is the file's, relative to the module.
func (s *source) path() string { return path.Join(s.folder, s.name) }

// at is a place in the file, for messages.
func (s *source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path(), s.files.Position(pos).Line)
}

// imported is one import of a file.
type imported struct {
	path  string
	local string // the name that the file uses for it: "." or "_" too
	pos   token.Pos
}

func (s *source) imports() []imported {
	var list []imported
	for _, spec := range s.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it, so this cannot be
		}
		local := path.Base(p)
		if local == "v2" {
			local = path.Base(path.Dir(p)) // math/rand/v2 is package rand
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		list = append(list, imported{path: p, local: local, pos: spec.Pos()})
	}
	return list
}

func parse(folder, name, text string) (*source, error) {
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path.Join(folder, name), err)
	}
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	return &source{folder: folder, name: name, lines: lines, files: files, syntax: syntax}, nil
}

// scanned is the module, which all tests here read, and read only.
var scanned = sync.OnceValues(func() ([]*source, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	return scan(root)
})

// scan parses every Go file of the module below root. It leaves out what the go
// command does: hidden folders, testdata, and modules within the module.
func scan(root string) ([]*source, error) {
	var list []*source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && leftOut(name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || hidden(entry.Name()) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(folder), entry.Name(), string(text))
		list = append(list, s)
		return err
	})
	return list, err
}

func hidden(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func leftOut(folder string) bool {
	base := filepath.Base(folder)
	if hidden(base) || base == "testdata" || base == "vendor" {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// moduleRoot is the nearest folder above the working one that has a go.mod.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("find the module: no go.mod above the working folder")
		}
		folder = above
	}
}

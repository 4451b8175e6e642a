// Command typecheck checks the types of all packages of the module, tests included, for other targets, as their compilers
// would, and generates no code for them: it takes seconds for what builds take minutes for.
//
//	go run ./.ci/typecheck windows/amd64 darwin/arm64,purego linux/386
//
// What follows the comma are build tags. Function bodies of other modules are not looked at. Beyond types it finds what else depends
// on the target: constant shifts as long as a number or longer, as vet does, and functions without a body or assembly.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a package as go list tells of it, after those that it imports.
type pkg struct {
	Dir, ImportPath string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

func main() {
	for _, target := range os.Args[1:] {
		if err := check(target); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			os.Exit(1)
		}
	}
}

func check(target string) error {
	target, tags, _ := strings.Cut(target, ",")
	system, arch, _ := strings.Cut(target, "/")
	sizes := types.SizesFor("gc", arch)
	if sizes == nil {
		return errors.New("want OS/ARCH, with tags after a comma, as in linux/386,purego")
	}
	list := exec.Command("go", "list", "-deps", "-test", "-json=Dir,ImportPath,GoFiles,SFiles,ImportMap,Module,Error", "-tags", tags, "./...")
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	found := checkAll(json.NewDecoder(out), sizes)
	return errors.Join(found, list.Wait())
}

// checkAll checks packages in the order in which they come.
func checkAll(list *json.Decoder, sizes types.Sizes) (faults error) {
	known, own := map[string]*types.Package{"unsafe": types.Unsafe}, 0
	for files := token.NewFileSet(); ; {
		var p pkg
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			if own == 0 {
				faults = errors.Join(faults, errors.New("no package of the main module is listed: nothing is checked"))
			}
			return faults
		} else if err != nil {
			return err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		var err error
		if p.Error != nil {
			err = errors.New(p.Error.Err)
		} else {
			known[p.ImportPath], err = p.check(files, known, sizes)
		}
		if p.Module != nil && p.Module.Main { // of others, whose functions are empty here, nothing is reported
			faults, own = errors.Join(faults, err), own+1
		}
	}
}

func (p pkg) check(files *token.FileSet, known map[string]*types.Package, sizes types.Sizes) (*types.Package, error) {
	own := p.Module != nil && p.Module.Main
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	var faults error
	config := types.Config{
		Sizes: sizes, IgnoreFuncBodies: !own, FakeImportC: true,
		Importer: importer(func(path string) (*types.Package, error) {
			if as, ok := p.ImportMap[path]; ok {
				path = as
			}
			if found := known[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("%s is not there for this target", path)
		}),
		Error: func(err error) { faults = errors.Join(faults, err) },
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	checked, _ := config.Check(path, files, parsed, info)
	for _, f := range parsed {
		if !own {
			break
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if fault := p.suspect(n, info, sizes); fault != "" {
				faults = errors.Join(faults, fmt.Errorf("%s: %s", files.Position(n.Pos()), fault))
			}
			return true
		})
	}
	return checked, faults
}

// suspect is what is wrong with a node for a target of these sizes, though its types are right.
func (p pkg) suspect(n ast.Node, info *types.Info, sizes types.Sizes) string {
	var number, count ast.Expr
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body == nil && len(p.SFiles) == 0 {
			return "a function without a body"
		}
	case *ast.BinaryExpr:
		if n.Op == token.SHL || n.Op == token.SHR {
			number, count = n.X, n.Y
		}
	case *ast.AssignStmt:
		if n.Tok == token.SHL_ASSIGN || n.Tok == token.SHR_ASSIGN {
			number, count = n.Lhs[0], n.Rhs[0]
		}
	}
	if number == nil || info.Types[number].Value != nil || info.Types[count].Value == nil {
		return ""
	}
	of, is := info.Types[number].Type.Underlying().(*types.Basic)
	by, exact := constant.Int64Val(constant.ToInt(info.Types[count].Value))
	if is && exact && of.Info()&types.IsInteger != 0 && of.Info()&types.IsUntyped == 0 && by >= 8*sizes.Sizeof(of) {
		return fmt.Sprintf("%s has %d bits, too few for a shift of %d", of, 8*sizes.Sizeof(of), by)
	}
	return ""
}

type importer func(string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }

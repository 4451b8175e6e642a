// Command typecheck checks the types of all packages of the module, tests included, for other targets, as their compilers
// would, and generates no code for them: it takes seconds for what builds take minutes for.
//
//	go run ./.ci/typecheck windows/amd64 darwin/arm64,purego linux/386
//
// What follows the comma are build tags. Function bodies of other modules are not looked at. Beyond types it finds what else depends
// on the target: constant shifts as long as a number or longer, as vet does; assembly that cannot be assembled; and functions without
// a body that no assembly has, for which compilers only look whether there is any, and linkers for the name.
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
	"regexp"
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
	root, err := exec.Command("go", "env", "GOROOT").Output() // built with -trimpath, this program does not know it
	if err != nil {
		return fmt.Errorf("finding Go's own files: %w", err)
	}
	include := filepath.Join(strings.TrimSpace(string(root)), "pkg", "include")
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
	found := checkAll(json.NewDecoder(out), sizes, assembler{system, arch, include})
	return errors.Join(found, list.Wait())
}

// checkAll checks packages in the order in which they come.
func checkAll(list *json.Decoder, sizes types.Sizes, a assembler) (faults error) {
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
			known[p.ImportPath], err = p.check(files, known, sizes, a)
		}
		if p.Module != nil && p.Module.Main { // of others, whose functions are empty here, nothing is reported
			faults, own = errors.Join(faults, err), own+1
		}
	}
}

func (p pkg) check(files *token.FileSet, known map[string]*types.Package, sizes types.Sizes, a assembler) (*types.Package, error) {
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
	if !own {
		return checked, faults
	}
	assembled, err := a.names(p)
	faults = errors.Join(faults, err)
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			if fault := suspect(n, info, sizes, assembled); fault != "" {
				faults = errors.Join(faults, fmt.Errorf("%s: %s", files.Position(n.Pos()), fault))
			}
			return true
		})
	}
	return checked, faults
}

// suspect is what is wrong with a node for a target of these sizes, of which these functions are in assembly, though its types are right.
func suspect(n ast.Node, info *types.Info, sizes types.Sizes, assembled map[string]bool) string {
	var number, count ast.Expr
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body == nil && !assembled[n.Name.Name] {
			return "a function without a body, and without assembly"
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

// assembler is that of a target, and Go's folder of files that assembly includes.
type assembler struct{ system, arch, include string }

// beginning is the line with which a function in assembly begins.
var beginning = regexp.MustCompile(`(?m)^TEXT ·(\w+)[<(]`)

// names assembles the files of a package, and tells which functions they have. What the assembler makes goes into a file of its own:
// it removes what it was to write if it fails, be it os.DevNull.
func (a assembler) names(p pkg) (found map[string]bool, faults error) {
	found = map[string]bool{}
	if len(p.SFiles) == 0 {
		return found, nil
	}
	made, err := os.MkdirTemp("", "typecheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(made)
	for _, name := range p.SFiles {
		path := filepath.Join(p.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, match := range beginning.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
		asm := exec.Command("go", "tool", "asm", "-o", filepath.Join(made, "object"), "-p", p.ImportPath, "-I", a.include, "-D", "GOOS_"+a.system, "-D", "GOARCH_"+a.arch, path)
		asm.Env = append(os.Environ(), "GOOS="+a.system, "GOARCH="+a.arch)
		if out, err := asm.CombinedOutput(); err != nil {
			faults = errors.Join(faults, fmt.Errorf("assembling %s: %w\n%s", path, err, out))
		}
	}
	return found, faults
}

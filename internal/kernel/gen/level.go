package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// level is a set of vector instructions to generate for.
type level struct {
	name  string // ends the names of its functions
	file  string // begins the names of its files
	width int    // bytes of its widest register
	table *words // of the file that is being written
}

// The widths of registers, in bytes.
const (
	widthX = 16
	widthY = 32
	widthZ = 64
)

func levels() []level {
	return []level{
		{name: "AVX2", file: "avx2", width: widthY},
		{name: "AVX512", file: "avx512", width: widthZ},
	}
}

// pastSuffix names routines that write past the cache.
const pastSuffix = "Past"

// constraint keeps generated files out of other builds.
const constraint = "amd64,!purego"

// printing names the generator in the generated files.
func printing() printer.Config {
	return printer.Config{Name: "internal/kernel/gen", Pkg: "kernel"}
}

// compile returns the assembly of all kernels for l, and its Go declarations.
func (l level) compile(list []kernel) (assembly, stubs []byte, err error) {
	context := build.NewContext()
	context.ConstraintExpr(constraint)
	l.table = new(words)
	for _, k := range list {
		if err := l.emit(context, k, false); err != nil {
			return nil, nil, fmt.Errorf("kernel %s: %w", k.name, err)
		}
		if !k.overwrites {
			continue
		}
		if err := l.emit(context, k, true); err != nil {
			return nil, nil, fmt.Errorf("kernel %s past the cache: %w", k.name, err)
		}
	}
	l.table.write(context)
	return printed(context)
}

// printed is the assembly and the Go declarations of what a context holds.
func printed(context *build.Context) (assembly, stubs []byte, err error) {
	file, err := context.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	if assembly, err = printer.NewGoAsm(printing()).Print(file); err != nil {
		return nil, nil, err
	}
	stubs, err = printer.NewStubs(printing()).Print(file)
	return assembly, stubs, err
}

// emit adds the routine of a kernel, or the one that writes past the cache.
func (l level) emit(context *build.Context, k kernel, past bool) error {
	signature, err := k.signature()
	if err != nil {
		return err
	}
	name, how := k.name+l.name, "."
	if past {
		name, how = k.name+pastSuffix+l.name, ", and writes past the cache."
	}
	context.Function(name)
	context.Attributes(attr.NOSPLIT)
	context.Pragma("noescape")
	context.Doc(fmt.Sprintf("%s is %sGo in %s instructions%s", name, k.name, l.name, how))
	context.Signature(signature)
	r := &routine{Context: context, level: l, past: past}
	r.open(k)
	k.body(r)
	return errors.Join(r.faults...)
}

func (l level) compileGemm() (assembly, stubs []byte, err error) {
	context := build.NewContext()
	context.ConstraintExpr(constraint)
	for _, k := range gemmKernels(l) {
		r, err := l.declared(context, k.name, "(p *GemmPanel)",
			fmt.Sprintf("multiplies a panel of at most %d columns.", k.vectors*l.width/floatSize))
		if err != nil {
			return nil, nil, err
		}
		newTile(r, k).panel()
		if err := errors.Join(r.faults...); err != nil {
			return nil, nil, err
		}
	}
	r, err := l.declared(context, "multiplyAddPeak", "(iterations int)", "multiplies and adds in registers only.")
	if err != nil {
		return nil, nil, err
	}
	multiplyAddPeak(r)
	if l.width == widthY {
		r, err = l.declared(context, "gemmTranspose", "(dst *float32, dstStep int, src *float32, srcStep int, rows, depth int)",
			"writes rows of src, at most 8, as columns of dst, and fills 8 columns.")
		if err != nil {
			return nil, nil, err
		}
		transpose(r)
	}
	file, err := context.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	if assembly, err = printer.NewGoAsm(printing()).Print(file); err != nil {
		return nil, nil, err
	}
	stubs, err = printer.NewStubs(printing()).Print(file)
	return assembly, stubs, err
}

// declared begins a routine with the parameters of list.
func (l level) declared(context *build.Context, name, list, doc string) (*routine, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "gemm_panel_gen.go", panelText+cellText, 0)
	if err != nil {
		return nil, err
	}
	pkg, err := new(types.Config).Check("kernel", files, []*ast.File{file}, nil)
	if err != nil {
		return nil, err
	}
	signature, err := gotypes.ParseSignatureInPackage(pkg, "func"+list)
	if err != nil {
		return nil, err
	}
	context.Function(name + l.name)
	context.Attributes(attr.NOSPLIT)
	context.Signature(signature)
	context.Doc(name + l.name + " " + doc)
	context.Pragma("noescape")
	return &routine{Context: context, level: l}, nil
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

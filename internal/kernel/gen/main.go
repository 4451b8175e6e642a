// Command gen writes the parts of package kernel that are for amd64: one
// assembly file for each set of vector instructions, the Go declarations of its
// functions, and the functions that choose among them. The files go to the
// folder -out:
//
//	cd internal/kernel/gen && go run . -out ..
//
// Each kernel is one body, written once for a lane of any width (lane.go), and
// emitted for every level (level.go) in a wide loop and for single values; so
// the tests of a level that this machine has carry weight for one it lacks. The
// tables of kernels are in kernels.go: one of those that walk along slices, one of those
// for pictures, whose files begin with picture_, and one of those that sum along rows,
// whose files begin with row_.
//
// It is a module of its own, so that nobody who imports Murmuration asks for the
// assembler library.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	flags := flag.NewFlagSet("gen", flag.ExitOnError) // the assembler library has its own -out
	out := flags.String("out", "", "`folder` to write to")
	_ = flags.Parse(os.Args[1:]) // exits on error
	if *out == "" || flags.NArg() > 0 {
		flags.Usage()
		os.Exit(2)
	}
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	files := map[string][]byte{}
	for prefix, list := range map[string][]kernel{"": kernels(), "picture_": pictureKernels(), "row_": rowKernels()} {
		for _, l := range levels() {
			assembly, stubs, err := l.compile(list)
			if err != nil {
				return fmt.Errorf("generate %s: %w", l.name, err)
			}
			files[prefix+l.file+"_amd64.s"] = assembly
			files[prefix+l.file+"_amd64_gen.go"] = stubs
		}
	}
	if err := addChoice(files, kernels()); err != nil {
		return fmt.Errorf("generate the choice of kernels: %w", err)
	}
	if err := addGemm(files); err != nil {
		return fmt.Errorf("generate %w", err)
	}
	for prefix, list := range map[string][]kernel{"picture_": pictureKernels(), "row_": rowKernels()} {
		if err := addWholeChoice(files, prefix, list); err != nil {
			return fmt.Errorf("generate the choice of kernels of %s: %w", prefix, err)
		}
	}
	if err := addCellKernels(files); err != nil {
		return fmt.Errorf("generate the kernels of %w", err)
	}
	if err := addCodecs(files); err != nil {
		return fmt.Errorf("generate the kernels of codecs: %w", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	return nil
}

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// within tells whether a path is p itself or below it.
func within(name, p string) bool {
	return name == p || strings.HasPrefix(name, p+"/")
}

// matches tells whether a folder is one that a rule names.
func matches(folder, pattern string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return within(folder, tree)
	}
	return folder == pattern
}

func matchesAny(folder string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(folder, p) })
}

// ruleOf finds the room of a folder.
func ruleOf(folder string) (room, bool) {
	for _, r := range rooms {
		if matches(folder, r.folder) {
			return r, true
		}
	}
	return room{}, false
}

// check lists what the sources violate, one line for each place.
func check(sources []*source) []string {
	var found []string
	for _, s := range sources {
		found = append(found, checkLength(s)...)
		if s.isTest() {
			continue // tests may import and start what they need
		}
		found = append(found, checkArrows(s)...)
		found = append(found, checkKeepers(s)...)
		found = append(found, checkInit(s)...)
		found = append(found, checkWall(s)...)
		found = append(found, checkSample(s)...)
		if slices.Contains(below, s.folder) {
			found = append(found, checkBannedImports(s)...)
			found = append(found, checkBannedNames(s)...)
			found = append(found, checkForks(s)...)
		}
	}
	return append(found, checkComments(sources)...)
}

func checkLength(s *source) []string {
	if s.lines <= maxLines || s.isGenerated() {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines, at most %d: one concept per file", s.path(), s.lines, maxLines)}
}

// checkArrows holds imports of ours against the room's rule.
func checkArrows(s *source) []string {
	var found []string
	for _, i := range s.imports() {
		if !within(i.path, module) {
			continue
		}
		target := strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/")
		rule, ok := ruleOf(s.folder)
		if !ok {
			found = append(found, fmt.Sprintf("%s imports %s: a new room needs a rule in internal/archtest", s.at(i.pos), target))
		} else if !matchesAny(target, rule.may) {
			found = append(found, fmt.Sprintf("%s imports %s: %s", s.at(i.pos), target, rule.why))
		}
	}
	return found
}

func checkKeepers(s *source) []string {
	var found []string
	for _, i := range s.imports() {
		for _, k := range keepers {
			if within(i.path, k.library) && !matchesAny(s.folder, k.rooms) {
				found = append(found, fmt.Sprintf("%s imports %s, which only %v may: %s", s.at(i.pos), i.path, k.rooms, k.why))
			}
		}
	}
	return found
}

func checkInit(s *source) []string {
	var found []string
	for _, d := range s.syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, s.at(f.Pos())+" has a func init: importing a package must do nothing")
		}
	}
	return found
}

func checkBannedImports(s *source) []string {
	var found []string
	for _, i := range s.imports() {
		for _, b := range bannedImports {
			if within(i.path, b.path) && !slices.Contains(b.except, s.folder) {
				found = append(found, fmt.Sprintf("%s imports %s: %s", s.at(i.pos), i.path, b.why))
			}
		}
	}
	return found
}

// checkBannedNames finds clocks and the global random source by the names that
// are taken from their packages. A variable named like the package is taken for
// it, so a *rand.Rand is better not called rand.
func checkBannedNames(s *source) []string {
	var found []string
	why := map[string]string{} // by the local name of a watched package
	for _, i := range s.imports() {
		switch i.path {
		case "time":
			why[i.local] = noClock
		case "math/rand", "math/rand/v2":
			why[i.local] = noChance
		default:
			continue
		}
		if i.local == "." {
			found = append(found, fmt.Sprintf("%s imports all names of %s, which hides where they come from: %s", s.at(i.pos), i.path, why[i.local]))
		}
	}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		name := selector.Sel.Name
		banned := why[pkg.Name] == noClock && slices.Contains(clocks, name) ||
			why[pkg.Name] == noChance && !slices.Contains(sources, name)
		if banned {
			found = append(found, fmt.Sprintf("%s uses %s.%s: %s", s.at(selector.Pos()), pkg.Name, name, why[pkg.Name]))
		}
		return true
	})
	return found
}

// checkForks finds go statements and everything made of channels.
func checkForks(s *source) []string {
	if slices.Contains(forkers, s.folder) {
		return nil
	}
	var found []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.ChanType:
			what = "a channel type"
		case *ast.SelectStmt:
			what = "a select statement"
		case *ast.SendStmt:
			what = "a send"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "a receive"
			}
		}
		if what != "" {
			found = append(found, fmt.Sprintf("%s has %s: %s", s.at(n.Pos()), what, noForks))
		}
		return true
	})
	return found
}

// checkSample finds the name of the sample program in comments and texts of the library: who embeds
// it has no such command.
func checkSample(s *source) []string {
	if within(s.folder, "examples") {
		return nil
	}
	var found []string
	look := func(pos token.Pos, text string) {
		if strings.Contains(strings.ToLower(text), sample) {
			found = append(found, fmt.Sprintf("%s names %s: %s", s.at(pos), sample, noSample))
		}
	}
	for _, group := range s.syntax.Comments {
		for _, line := range group.List {
			look(line.Pos(), line.Text)
		}
	}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok {
			look(text.Pos(), text.Value)
		}
		return true
	})
	return found
}

// checkComments asks for one package comment per package, of the standard form
// for a package that others import.
func checkComments(sources []*source) []string {
	commented := map[string]bool{}
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		doc := strings.TrimSpace(s.syntax.Doc.Text())
		name := s.syntax.Name.Name
		if name == "main" {
			commented[s.folder] = commented[s.folder] || doc != ""
		} else {
			commented[s.folder] = commented[s.folder] || strings.HasPrefix(doc, "Package "+name+" ")
		}
	}
	var found []string
	for folder, ok := range commented {
		if !ok {
			found = append(found, folder+" has no package comment: purpose, limits, where to go next (\"Package x ...\")")
		}
	}
	slices.Sort(found)
	return found
}

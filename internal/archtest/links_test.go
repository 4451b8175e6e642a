package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	fenced   = regexp.MustCompile("(?ms)^[ >]*```.*?^[ >]*```")
	code     = regexp.MustCompile("`[^`\n]*`")
	toFile   = regexp.MustCompile(`\]\(\s*<?([^()\s>]+)>?(?:\s+"[^"]*")?\s*\)|(?m:^ {0,3}\[[^\]^]+\]:\s*(\S+))|(?:src|href)="([^"]+)"`)
	scheme   = regexp.MustCompile(`^[a-z]+:`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?)[ #]*$`)
	anchor   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_\- ]`)
	decision = regexp.MustCompile(`\bdesign/(\d{3})\b`)
	page     = regexp.MustCompile(`\bdocs/[\w/-]+\.(?:md|sh)\b`)
	folder   = regexp.MustCompile("`([a-z]\\w*(?:/[a-z][\\w.-]*)+)`")
)

// TestLinks: what a document or a comment points at is there. The network is not asked.
func TestLinks(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	found, links, err := checkLinks(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if links < 100 {
		t.Errorf("%d links were found: some were not seen", links)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// checkLinks lists the links of all documents (*.md, llms.txt) that lead nowhere, names of design notes and
// pages of docs, in any file, that are none, and folders in code marks that do not exist. CHANGELOG and design
// notes may name folders that were, or that were decided against.
func checkLinks(root fs.FS) (found []string, links int, err error) {
	notes, err := fs.Glob(root, "docs/design/*.md")
	if err != nil {
		return nil, 0, err
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == ".git" || entry.Name() == "testdata" || entry.Name() == "dist"):
			return fs.SkipDir
		case name == "internal/archtest/links_test.go" || entry.IsDir() || !slices.Contains([]string{".md", ".txt", ".go", ".sh", ".py", ".mjs", ".yaml", ".yml", ""}, path.Ext(name)):
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		text := string(content)
		missing := func(what string) {
			found = append(found, fmt.Sprintf("%s points at %s, which is not there", name, what))
		}
		for _, m := range decision.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(path.Base(n), m[1]+"-") }) {
				missing(m[0])
			}
		}
		for _, p := range page.FindAllString(text, -1) {
			if !exists(root, p) {
				missing(p)
			}
		}
		if path.Ext(name) != ".md" && path.Base(name) != "llms.txt" {
			return nil
		}
		text = fenced.ReplaceAllString(text, "")
		for _, m := range folder.FindAllStringSubmatch(text, -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if exists(root, top) && !exists(root, m[1]) && name != "CHANGELOG.md" && path.Dir(name) != "docs/design" {
				missing(m[1])
			}
		}
		for _, m := range toFile.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := m[1] + m[2] + m[3]
			if scheme.MatchString(target) {
				continue
			}
			links++
			file, part, _ := strings.Cut(target, "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(target, "#") {
				file = name
			}
			if !exists(root, file) || part != "" && !slices.Contains(anchors(root, file), part) {
				missing(target)
			}
		}
		return nil
	})
	return found, links, err
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// anchors are the names that GitHub gives a document's headings, and those it gives itself.
func anchors(root fs.FS, name string) (names []string) {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return nil // a folder has none
	}
	text := fenced.ReplaceAllString(string(content), "")
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := toFile.ReplaceAllString(m[1], "")
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		if n := seen[name]; n > 0 {
			names = append(names, fmt.Sprint(name, "-", n))
		} else {
			names = append(names, name)
		}
		seen[name]++
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// The check sees what leads nowhere, and nothing else.
func TestLinksAreChecked(t *testing.T) {
	root := fstest.MapFS{}
	for name, text := range map[string]string{
		"docs/design/001-first.md": "# First\n",
		"docs/A.md":                "# Two `words`, and\n## Again\n## Again\n```\n# no heading\n[no](link.md)\n```\n",
		"peer/x.go":                "// See docs/design/001, design/002 and docs/B.md.\n",
		"CHANGELOG.md":             "`peer/gone` went.\n",
		"README.md": "[a](docs/A.md#two-words-and) [b](docs/A.md#again-1) [c](docs) [d](https://example.org/x.md) `[e](none.md)` `peer/x.go`\n" +
			"![f](docs/f.png) [g](docs/A.md#again-2) [h](docs/A.md#no-heading) [i](#here) `peer/gone` `other/folder` <img src=\"g.png\">\n\n[j]: docs/j.md \"J\"\n",
	} {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	found, links, err := checkLinks(root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range []string{"README.md docs/j.md", "README.md peer/gone", "README.md docs/f.png", "README.md docs/A.md#again-2", "README.md docs/A.md#no-heading", "README.md #here", "README.md g.png", "README.md docs/j.md", "peer/x.go design/002", "peer/x.go docs/B.md"} {
		file, target, _ := strings.Cut(f, " ")
		want = append(want, fmt.Sprintf("%s points at %s, which is not there", file, target))
	}
	slices.Sort(want)
	if slices.Sort(found); !slices.Equal(found, want) || links != 9 {
		t.Errorf("%d links, found\n%s\nwant\n%s", links, strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

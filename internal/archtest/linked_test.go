package archtest

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked is what a package, with all that it imports at any depth, may not link: import
// paths, and all below them.
var linked = []struct {
	what  string
	never []string
	why   string
}{
	{"peer/control", []string{module + "/internal/kernel", module + "/tensor", module + "/internal/replica", module + "/quant", "gonum.org"},
		"an operator's program embeds no peer"},
	{"peer/peertest", []string{"testing"},
		"programs simulate too, and ship"},
	{"peer", []string{
		"github.com/libp2p/go-libp2p/config", "github.com/quic-go", "github.com/pion", "github.com/gorilla/websocket",
		"github.com/libp2p/go-libp2p/p2p/transport/websocket", "go.uber.org/fx", "go.uber.org/dig",
	}, "libp2p is assembled of the parts that a peer uses (docs/design/036)"},
}

// maxModules bounds the modules of others that who embeds a peer links, and has to look after.
const maxModules = 65

func TestModulesOfAPeer(t *testing.T) {
	const others = `{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}`
	if linked := dependencies(t, "peer", others); len(linked) > maxModules {
		t.Errorf("peer links %d modules of others, more than %d: %v", len(linked), maxModules, linked)
	}
}

// TestLinked asks go list what packages link in all; the rules above see direct imports only.
func TestLinked(t *testing.T) {
	for _, l := range linked {
		links := dependencies(t, l.what, "{{.ImportPath}}")
		for _, never := range l.never {
			for _, path := range links {
				if path == never || strings.HasPrefix(path, never+"/") {
					t.Errorf("%s links %s: %s", l.what, path, l.why)
				}
			}
		}
	}
}

// Of the shipped binary no package of ours imports testing; parquet's thrift does.
func TestShippedTestsNothing(t *testing.T) {
	const ours = `{{with .Module}}{{if .Main}}{{range $.Imports}}{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	if imports := dependencies(t, "examples/gossipnode", ours); slices.Contains(imports, "testing") {
		t.Error("a package that examples/gossipnode links imports testing, outside of tests")
	}
}

// dependencies are the packages that one links, itself included, each once in a form of go
// list; those without that form are left out.
func dependencies(t *testing.T, folder, form string) []string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", form, "./"+folder)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("asking go list what %s links: %v", folder, err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		found[strings.TrimSpace(line)] = true
	}
	delete(found, "")
	if len(found) < 2 {
		t.Fatalf("%s links %d packages", folder, len(found))
	}
	return slices.Sorted(maps.Keys(found))
}

package archtest

import (
	"fmt"
	"strings"
	"testing"
)

const ours = `"` + module + `/`

// checkText runs the checker on one file with a package comment.
func checkText(t *testing.T, folder, name, body string) []string {
	t.Helper()
	s, err := parse(folder, name, "// Package x is a test.\npackage x\n"+body+"\n")
	if err != nil {
		t.Fatal(err)
	}
	return check([]*source{s})
}

// Each file breaks one rule, and the checker says which, where and why.
func TestCheckerSeesViolations(t *testing.T) {
	long := strings.Repeat("// line\n", maxLines-2)
	for _, c := range []struct {
		name, folder, body string
		want               string
	}{
		{"arrow up", "tensor", `import _ ` + ours + `averaging"`, "x.go:3 imports averaging"},
		{"leaf with an import", "topology", `import _ ` + ours + `tensor"`, "imports tensor"},
		{"adapter to adapter", "peer/swim", `import _ ` + ours + `peer/p2pnet"`, "imports peer/p2pnet"},
		{"adapter to peer", "peer/memnet", `import _ ` + ours + `peer"`, "imports peer"},
		{"peer with the test network", "peer", `import _ ` + ours + `peer/memnet"`, "imports peer/memnet"},
		{"sim too deep", "internal/sim", `import _ ` + ours + `quant"`, "imports quant"},
		{"example of internals", "examples/embed", `import _ ` + ours + `internal/sim"`, "imports internal/sim"},
		{"room without a rule", "peer/new", `import _ ` + ours + `tensor"`, "a new room needs a rule"},
		{"root without a rule", ".", `import _ ` + ours + `tensor"`, "a new room needs a rule"},
		{"the root of the module", "peer", `import _ "` + module + `"`, "imports "},

		{"libp2p in peer", "peer", `import _ "github.com/libp2p/go-libp2p/core/host"`, "only [peer/p2pnet/...] may"},
		{"gossipsub in swim", "peer/swim", `import _ "github.com/libp2p/go-libp2p-pubsub"`, "only [peer/p2pnet/...] may"},
		{"memberlist in peer", "peer", `import _ "github.com/hashicorp/memberlist"`, "only [peer/swim] may"},
		{"cobra in peer", "peer", `import _ "github.com/spf13/cobra"`, "only [examples/...] may"},
		{"yaml in peer", "peer", `import _ "go.yaml.in/yaml/v3"`, "only [examples/...] may"},
		{"metrics in peer", "peer", `import _ "github.com/prometheus/client_golang/prometheus"`, "only [examples/...] may"},
		{"plots in topology", "topology", `import _ "gonum.org/v1/plot/plotter"`, "only [examples/...] may"},

		{"socket", "averaging", `import _ "net/netip"`, noWorld},
		{"file", "tensor", `import _ "os"`, noWorld},
		{"log", "internal/replica", `import _ "log/slog"`, noWorld},
		{"zap", "internal/sim", `import _ "go.uber.org/zap/zapcore"`, noWorld},
		{"system call", "internal/kernel", `import _ "syscall"`, noWorld},
		{"lock", "averaging", `import "sync"; var mu sync.Mutex`, noLocks},
		{"atomic", "quant", `import _ "sync/atomic"`, noLocks},
		{"system randomness", "internal/wire", `import _ "crypto/rand"`, noChance},

		{"clock", "averaging", `import "time"; var t = time.Now()`, "uses time.Now"},
		{"clock as a value", "averaging/baseline", `import "time"; var now = time.Now`, "uses time.Now"},
		{"renamed clock", "internal/sim", `import clock "time"; var t = clock.Since`, "uses clock.Since"},
		{"timer", "internal/replica", `import "time"; var t = time.NewTimer`, noClock},
		{"hidden clock", "topology", `import . "time"; var t = Now()`, "imports all names of time"},
		{"time of day", "peer", `import "time"; var t = time.Now().Unix()`, noWall},
		{"renamed time of day", "peer/swim", `import clock "time"; var t = clock.UnixMilli(7)`, noWall},
		{"global source", "averaging", `import "math/rand/v2"; var n = rand.IntN(3)`, "uses rand.IntN"},
		{"old global source", "topology", `import mr "math/rand"; var n = mr.Float64()`, "uses mr.Float64"},
		{"global shuffle in a body", "quant", `import "math/rand/v2"; func f() { rand.Shuffle(1, nil) }`, noChance},

		{"go statement", "averaging", `func f() { go f() }`, "a go statement"},
		{"goroutine in the replica", "internal/replica", `func f() { go f() }`, noForks},
		{"channel", "quant", `var c chan int`, "a channel type"},
		{"send", "quant", `func f[C ~[]int](c int) { c <- 1 }`, "a send"},
		{"receive", "quant", `func f(c int) { _ = <-c }`, "a receive"},
		{"select", "internal/wire", `func f() { select {} }`, "a select statement"},

		{"the sample in a comment", "peer/swim", `// as gossipnode does`, "x.go:3 names gossipnode"},
		{"the sample in a text", "peer", `const remedy = "Gossipnode doctor tells more"`, noSample},

		{"init", "examples/embed", `func init() {}`, "x.go:3 has a func init"},
		{"long file", "peer", long + "//", "has 401 lines"},
	} {
		found := checkText(t, c.folder, "x.go", c.body)
		if len(found) != 1 || !strings.Contains(found[0], c.want) {
			t.Errorf("%s: found %q, want one line with %q", c.name, found, c.want)
		}
	}
}

// What the rules allow passes: a checker that cries wolf gets switched off.
func TestCheckerAllows(t *testing.T) {
	for _, c := range []struct{ name, folder, file, body string }{
		{"arrows down", "internal/replica", "x.go", `import (_ ` + ours + `averaging"; _ ` + ours + `internal/coding"; _ ` + ours + `tensor"; _ ` + ours + `internal/wire")`},
		{"default adapters", "peer", "x.go", `import (_ ` + ours + `peer/p2pnet"; _ ` + ours + `peer/swim"; _ ` + ours + `internal/kernel")`},
		{"examples of examples", "examples/gossipnode", "x.go", `import (_ ` + ours + `examples/zoo"; _ ` + ours + `peer"; _ "github.com/spf13/cobra")`},
		{"an example names itself", "examples/gossipnode", "x.go", `const name = "gossipnode" // of gossipnode`},
		{"a test names the sample", "peer", "x_test.go", `const name = "gossipnode"`},
		{"a room of no imports", "somewhere/new", "x.go", ``},
		{"libp2p in its room", "peer/p2pnet", "x.go", `import (_ "github.com/libp2p/go-libp2p"; _ ` + ours + `peer/transport")`},
		{"a name that begins alike", "averaging", "x.go", `import _ "network/osmosis"`},
		{"durations", "averaging", "x.go", `import "time"; const tick = 3 * time.Second; func f(now time.Time) time.Time { return now.Add(tick) }`},
		{"a method named Now", "averaging", "x.go", `import "time"; type w struct{}; func (w) Now() (t time.Time) { return t }; var t = w{}.Now()`},
		{"durations on one machine", "peer", "x.go", `import "time"; var t = time.Until(time.Now().Add(time.Second)).Round(0)`},
		{"own source", "averaging", "x.go", `import "math/rand/v2"; func f(r *rand.Rand) int { return rand.New(rand.NewPCG(1, 2)).IntN(3) + r.IntN(4) }`},
		{"slice locks", "internal/replica", "x.go", `import "sync"; type slice struct{ mu sync.Mutex }`},
		{"fork and join", "tensor", "x.go", `import "sync"; func f() { var w sync.WaitGroup; c := make(chan int, 1); go func() { c <- 1 }(); w.Wait() }`},
		{"the runtime does it all", "peer", "x.go", `import ("time"; "os"; "log/slog"; "sync"); var _ sync.Mutex; func f() { go f(); time.Sleep(1); _ = os.Args; slog.Info("") }`},
		{"tests below peer", "topology", "x_test.go", `import ("os"; "time"); func init() { go f() }; func f() { _ = time.Now; _ = os.Args }`},
		{"400 lines", "peer", "x.go", strings.Repeat("// line\n", maxLines-3)},
		{"a long generated file", "internal/kernel", "x_gen.go", strings.Repeat("// line\n", 2*maxLines)},
		{"a method named init", "peer", "x.go", `type t struct{}; func (t) init() {}`},
	} {
		if found := checkText(t, c.folder, c.file, c.body); len(found) > 0 {
			t.Errorf("%s: found %q, want nothing", c.name, found)
		}
	}
}

func TestCheckerWantsPackageComments(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool // a violation
	}{
		{"package x", true},
		{"// Some words.\npackage x", true},
		{"// Package y is another.\npackage x", true},
		{"//go:build linux\n\npackage x", true},
		{"// Package x is here.\npackage x", false},
		{"// X does things.\npackage main", false},
		{"package main", true},
	} {
		s, err := parse("a/x", "x.go", c.text)
		if err != nil {
			t.Fatal(err)
		}
		// A second file without a comment, and a test, change nothing.
		other, _ := parse("a/x", "y.go", fmt.Sprintf("package %s", s.syntax.Name.Name))
		test, _ := parse("a/x", "x_test.go", "package x_test")
		if found := check([]*source{s, other, test}); (len(found) > 0) != c.want {
			t.Errorf("%q: found %q", c.text, found)
		}
	}
}

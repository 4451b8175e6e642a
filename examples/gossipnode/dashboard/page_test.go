package dashboard

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWordsOfThePage: the page says what is so. Its functions run in Node; the page as a whole is
// looked at in a browser, by the tests of gossipnode.
func TestWordsOfThePage(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no Node.js on this machine: what the page says is not tested here (on Debian: apt-get install nodejs)")
	}
	text, err := page.ReadFile("page/format.js")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "format.mjs")
	if err := os.WriteFile(module, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		`p.word({ state: "waiting", total: 1 }, { minPeers: 3 })`:                                              "waiting, 1 of 3 here",
		`p.word({ state: "waiting", total: 1, paused: true }, { minPeers: 3 })`:                                "paused",
		`p.word({ state: "training" }, {})`:                                                                    "training",
		`p.word({ state: "closed", over: true }, {})`:                                                          "over",
		`p.word({ state: "over", over: true, stopped: true }, {})`:                                             "stopped",
		`p.ahead({ over: true, progress: 1 })`:                                                                 "the work is done",
		`p.ahead({ over: true, progress: 0.01 })`:                                                              "ended by the operator",
		`p.ahead({ progress: 0.5, left: 60 })`:                                                                 "60 s left",
		`Object.values(p.tiles({ loss: 0.5, accuracy: 0.97666, distance: 0.516 })).join(" ")`:                  "Loss,0.5 Accuracy, sampled,97.7 % Apart, estimated,0.516",
		`p.tiles({ distance: 0.516, final: { consensus_distance: 0.004061, test_accuracy: {} } }).distance[1]`: "0.00406",
		`p.tiles({ distance: 0.516, final: { consensus_distance: 0.004061, test_accuracy: {} } }).distance[0]`: "Apart",
		`p.tiles({ distance: 0.516, final: { consensus_distance: null, test_accuracy: {} } }).distance[1]`:     "–",
		`p.tiles({ accuracy: 0.977, final: { test_accuracy: { mean: 0.97943 } } }).accuracy[1]`:                "97.94 %",
		`p.doubts({ judged: { harm: 1.54321, trust: 0.375 } })`:                                                "trusted at 38 %: an exchange with it raises this peer's loss by 1.54 of what others change it by",
		`"none" + p.doubts({ judged: null })`:                                                                  "none",
		`p.label({ id: "x", name: "a-name-of-twenty-one" }, [])`:                                               "a-name-of-twe…",
	}
	expressions := slices.Sorted(maps.Keys(cases))
	program := `import * as p from "file://` + filepath.ToSlash(module) + `"; console.log([` + strings.Join(expressions, ",") + `].join("\n"))`
	out, err := exec.Command(node, "--input-type=module", "-e", program).CombinedOutput()
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(said) != len(expressions) {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, expression := range expressions {
		if want := cases[expression]; said[i] != want {
			t.Errorf("%s: %q, want %q", expression, said[i], want)
		}
	}
}

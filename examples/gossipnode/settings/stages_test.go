package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// A file of stages is YAML or JSON; what members compare is the same of both, and is read again.
func TestStagesAreRead(t *testing.T) {
	const asYAML = `
# every kind there is
- kind: impute
  by: median
  indicator: true
- kind: outliers
  reach: 2.5
  columns: [size, age]
- {kind: standardize}
- {kind: minmax}
- {kind: bins, count: 8}
- kind: dates
  columns: {day: false, at: true}
- {kind: dropmany, values: 100}
- {kind: dropuseless, tolerance: 0.001}
- {kind: ngrams, columns: [note], words: 1}
- {kind: buckets, columns: [shop], count: 32}
- {kind: codes, columns: [grade]}
- {kind: onehot, floor: 20}
`
	var s Stages
	if err := s.Set(clitest.WriteFile(t, "stages.yaml", asYAML)); err != nil {
		t.Fatal(err)
	}
	if len(s.List) != len(prepare.Kinds()) || !strings.HasPrefix(s.String(), `[{"by":"median","indicator":true,"kind":"impute"},`) {
		t.Errorf("%d stages: %s", len(s.List), s.String())
	}
	if i := s.List[0].(*prepare.Impute); i.By != prepare.Median || !i.Indicator {
		t.Errorf("%+v", i)
	}
	if d := s.List[5].(*prepare.Dates); len(d.Columns) != 2 || !d.Columns["at"] {
		t.Errorf("%+v", d)
	}
	again := Stages{}
	if err := again.Take(s.String()); err != nil || again.String() != s.String() || len(again.List) != len(s.List) {
		t.Errorf("%v, %s", err, again.String())
	}
	if err := again.Set(clitest.WriteFile(t, "stages.json", s.String())); err != nil || again.String() != s.String() {
		t.Errorf("%v, %s", err, again.String())
	}
	if err := again.Set(""); err != nil || again.List != nil || again.String() != "" {
		t.Errorf("%v, %s", err, again.String())
	}
}

// What is wrong is told by its line, with what there is.
func TestStagesThatAreNone(t *testing.T) {
	for text, says := range map[string]string{
		"- kind: impute\n- kind: onehott\n":               `line 2: there is no kind of stage "onehott": want bins, buckets, codes, dates, dropmany, dropuseless, impute, minmax, ngrams, onehot, outliers or standardize; did you mean "onehot"?`,
		"- kind: impute\n  by: median\n  flor: 3\n":       `line 3: impute has no setting "flor": want columns, by, value or indicator`,
		"- kind: onehot\n  learned: {}\n":                 `line 2: onehot has no setting "learned": want columns or floor`,
		"- kind: onehot\n\n  floor: many\n":               "line 3: floor of onehot: want a float64, not a string",
		"- kind: bins\n  count: 1\n":                      "line 1: bins: Count is 1: want 2 to 1024",
		"- kind: impute\n- by: mean\n":                    `line 2: there is no kind of stage ""`,
		"- kind: impute\n- kind: onehot\n  kind: codes\n": `line 3: mapping key "kind" already defined`,
		"- impute\n":     `line 1: want a stage and its settings, such as "kind: onehot"`,
		"kind: impute\n": "want a list of stages",
		"":               "want a list of stages",
		"[]":             "want a list of stages",
		"- kind: [\n":    "line",
	} {
		var s Stages
		if err := s.Set(clitest.WriteFile(t, "stages.yaml", text)); err == nil || !strings.Contains(err.Error(), says) || s.List != nil {
			t.Errorf("%q: %v; want %s", text, err, says)
		}
	}
	var s Stages
	if err := s.Take(clitest.WriteFile(t, "stages.yaml", "- kind: impute\n")); err == nil {
		t.Error("another member's word has a file of this one's be read")
	}
	if err := s.Set("nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Error(err)
	}
}

// What TABLES shows can be read.
func TestStagesOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/TABLES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	shown, _, found := strings.Cut(after, "```")
	var s Stages
	if err := s.Take(shown); err != nil || !found || len(s.List) < 5 {
		t.Errorf("%v, %d stages of %q", err, len(s.List), shown)
	}
}

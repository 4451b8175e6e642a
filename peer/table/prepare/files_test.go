package prepare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// yesterday are rows of the pipeline in testdata, which the build of 2026-11-24 (3c1c9d5) wrote.
func yesterday() *table.Batch {
	b := batch(numbers("age", 20, 40, 60, math.NaN(), 30, 50), numbers("size", 1, 2, 3, 4, 5, 600), numbers("flat", 7, 7, 7, 7, 7, 7),
		numbers("y", 1, 0, 2, 0, 1, 5))
	for _, c := range []table.Column{
		{Name: "city", Codes: []int32{0, 1, 2, -1, 0, 1}, Values: []string{"Oslo", "Rome", "b=c"}},
		{Name: "grade", Codes: []int32{0, 1, 0, 1, -1, 0}, Values: []string{"A", ""}},
		{Name: "note", Codes: []int32{0, 1, 0, 1, 0, 2}, Values: []string{"late again", "on time", "late"}},
		{Name: "tail", Codes: []int32{0, 1, 2, 3, 4, 5}, Values: []string{"N1", "N2", "N3", "N4", "N5", "N6"}},
	} {
		c.Kind = table.Category
		b.Columns = append(b.Columns, c)
	}
	return b
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAPipelineOfYesterday(t *testing.T) {
	p, err := Read(bytes.NewReader(read(t, "pipeline-1")))
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Transform(yesterday())
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, c := range out.Columns {
		fmt.Fprintf(&got, "%s %s %.6g %v %q\n", c.Name, c.Kind, c.Numbers, c.Codes, c.Values)
	}
	if want := read(t, "pipeline-1.txt"); got.String() != string(want) {
		t.Errorf("columns\n%s\nwant\n%s", got.String(), want)
	}
}

// TestAPipelineThatAsksForMemory has counts that were divided by, or asked for 192 GB.
func TestAPipelineThatAsksForMemory(t *testing.T) {
	for _, stage := range []string{
		`{"kind":"buckets","stage":{"count":2000000000,"learned":{"c":true}}}`, `{"kind":"ngrams","stage":{"count":-1,"words":1,"learned":{"c":true}}}`,
		`{"kind":"ngrams","stage":{"words":2000000000,"count":4,"learned":{"c":true}}}`, `{"kind":"bins","stage":{"learned":{"x":[2,1]}}}`,
		`{"kind":"buckets","stage":{"count":16384,"learned":{"a":true,"b":true,"c":true,"d":true,"e":true}}}`,
		`{"kind":"impute","stage":{"by":"magic","learned":{"x":{"value":1}}}}`,
	} {
		var p Pipeline
		if err := json.Unmarshal([]byte(`{"version":1,"input":{"fields":[{"name":"c","kind":"category"}]},"stages":[`+stage+`]}`), &p); !errors.Is(err, ErrPipeline) {
			t.Errorf("%s: %v", stage, err)
		}
	}
	var p Pipeline
	none := `{"version":1,"input":{"fields":[{"name":"c","kind":"category"}]},"stages":[{"kind":"buckets","stage":{"count":0,"learned":{"c":true}}}]}`
	if err := json.Unmarshal([]byte(none), &p); err == nil {
		_, err = p.Transform(batch(texts("c", "a")))
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNumbersTooLargeAreNamed(t *testing.T) {
	huge := batch(numbers("huge", 1e155, -1e155, 3e155), numbers("y", 0, 1, 2))
	for _, stage := range []table.Stage{&Standardize{}, &Impute{}, &DropUseless{Target: "y"}} {
		err := stage.Fit(t.Context(), table.Alone{}, table.InMemory(huge))
		if err == nil || !strings.Contains(err.Error(), `"huge"`) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%T: %v", stage, err)
		}
	}
	ends := batch(numbers("huge", math.MaxFloat64, -math.MaxFloat64))
	if err := (&MinMax{}).Fit(t.Context(), table.Alone{}, table.InMemory(ends)); err == nil || !strings.Contains(err.Error(), `"huge"`) {
		t.Error(err)
	}
	// Each member's are small enough, all together are not.
	table.Together(2, func(m table.Flock, i int) {
		for k, stage := range []table.Stage{&Standardize{}, &Impute{}, &DropUseless{Target: "y"}} {
			b := batch(numbers("huge", []float64{1e308, -1e308}[i]), numbers("y", float64(i)))
			err := stage.Fit(t.Context(), table.Scope(m, fmt.Sprint("f", k)), table.InMemory(b))
			if err == nil || !strings.Contains(err.Error(), `"huge"`) {
				t.Errorf("member %d, %T: %v", i, stage, err)
			}
		}
	})
}

// TestTheEmptyTextMayBeMostFrequent: it is a value as any other.
func TestTheEmptyTextMayBeMostFrequent(t *testing.T) {
	b := batch(table.Column{Name: "c", Kind: table.Category, Codes: []int32{0, 0, 0, 1, table.Missing}, Values: []string{"", "a"}})
	stage := fitted(t, []*table.Batch{b}, func() table.Stage { return &Impute{By: MostFrequent} })
	c := transformed(t, stage, b).Columns[0]
	if got := c.Values[c.Codes[4]]; got != "" {
		t.Errorf("%q is filled in, want the empty text", got)
	}
}

// TestDistinctRefusesWhatLostDigits: 2^53+1 and 2^53 are one float64, and may have been two rows.
func TestDistinctRefusesWhatLostDigits(t *testing.T) {
	_, _, err := Distinct(t.Context(), table.Alone{}, table.InMemory(batch(numbers("id", 1, 9007199254740993))))
	if err == nil || !strings.Contains(err.Error(), `"id"`) || !strings.Contains(err.Error(), "category") {
		t.Error(err)
	}
}

package learn

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

func smallFile() File {
	return File{
		Pipeline: &prepare.Pipeline{Input: table.Schema{Fields: []table.Field{{Name: "distance"}}}, Stages: []table.Stage{&prepare.Impute{}}},
		Target:   "arr_delay>15",
		Classes:  []string{"false", "true"},
		Features: []table.Field{{Name: "distance"}, {Name: "carrier", Kind: table.Category}},
		Model:    &LogisticModel{Coefficients: Coefficients{Columns: []string{"distance"}, Intercept: []float64{1. / 3}, Weights: [][]float64{{-1e-17}}}},
	}
}

func TestFileIsReadAsItWasWritten(t *testing.T) {
	var out bytes.Buffer
	if err := Save(&out, smallFile()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "murmuration model 1 logistic ") {
		t.Errorf("the first line is %q", strings.SplitN(out.String(), "\n", 2)[0])
	}
	got, err := Load(&out)
	if err != nil {
		t.Fatal(err)
	}
	if want := smallFile(); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, wrote %+v", got, want)
	}
}

func TestDamagedFiles(t *testing.T) {
	var out bytes.Buffer
	if err := Save(&out, smallFile()); err != nil {
		t.Fatal(err)
	}
	whole := out.String()
	for i := range len(whole) {
		if _, err := Load(strings.NewReader(whole[:i])); !errors.Is(err, ErrModelFile) {
			t.Fatalf("cut after %d bytes: %v", i, err)
		}
		changed := []byte(whole)
		changed[i] ^= 1
		if _, err := Load(bytes.NewReader(changed)); !errors.Is(err, ErrModelFile) && !errors.Is(err, ErrModelKind) && i > len(fileMagic)+len(" 1 logistic ") {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	if _, err := Load(strings.NewReader(whole + "x")); !errors.Is(err, ErrModelFile) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := Load(strings.NewReader(strings.Replace(whole, "model 1", "model 2", 1))); !errors.Is(err, ErrModelKind) {
		t.Errorf("a newer version: %v", err)
	}
	if _, err := Load(strings.NewReader(strings.Repeat("murmuration model 1 ", 100))); !errors.Is(err, ErrModelFile) {
		t.Errorf("no first line: %v", err)
	}
}

// What has a good checksum may still be nonsense.
func TestFilesOfNonsense(t *testing.T) {
	for name, f := range map[string]File{
		"weights of no column": {Model: &LinearModel{Coefficients{Intercept: []float64{1}, Weights: [][]float64{{1}}}}},
		"no output":            {Model: &LinearModel{}},
		"three classes of two": {Classes: []string{"a", "b", "c"}, Model: smallFile().Model},
	} {
		var out bytes.Buffer
		if err := Save(&out, f); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(&out); !errors.Is(err, ErrModelFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	type unknown struct{ Model }
	if err := Save(new(bytes.Buffer), File{Model: unknown{}}); !errors.Is(err, ErrModelKind) {
		t.Errorf("an unknown model: %v", err)
	}
	if _, err := (typedModel{Kind: "oracle"}).decode(nil); !errors.Is(err, ErrModelKind) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestPredictNamesTheColumnAtFault(t *testing.T) {
	m := smallFile().Model
	for want, b := range map[string]*table.Batch{
		`no column "distance"`:              {Rows: 1, Columns: []table.Column{{Name: "x", Numbers: []float64{1}}}},
		`"distance" is of categories`:       {Rows: 1, Columns: []table.Column{{Name: "distance", Kind: table.Category, Codes: []int32{0}}}},
		`"distance" has 1 numbers for 2 ro`: {Rows: 2, Columns: []table.Column{{Name: "distance", Numbers: []float64{1}}}},
	} {
		if _, err := m.Predict(nil, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

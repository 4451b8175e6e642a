package learn

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestTreeModelIsReadAsItWasWritten(t *testing.T) {
	rows := wine(300)
	for _, learner := range []Learner{Tree{}, Forest{Trees: 3}, Boost{Trees: 3}} {
		m, err := learner.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := Save(&file, File{Model: m, Classes: rows.Classes}); err != nil {
			t.Fatal(err)
		}
		read, err := Load(&file)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := m.Predict(nil, rows.Features)
		got, err := read.Model.Predict(nil, rows.Features)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%T: the model that was read predicts otherwise, %v", learner, err)
		}
	}
}

// TestTreeModelRefusesDamage changes numbers of a model: it is refused, or predicts something,
// and never walks in a circle or out of its lists.
func TestTreeModelRefusesDamage(t *testing.T) {
	rows := wine(300)
	forest, err := Forest{Trees: 3}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(forest)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		var f treeFile
		if err := json.Unmarshal(content, &f); err != nil {
			t.Fatal(err)
		}
		value := rapid.IntRange(-2, 2*len(f.Column)).Draw(t, "value")
		at := rapid.IntRange(0, len(f.Column)-1).Draw(t, "at")
		switch rapid.IntRange(0, 7).Draw(t, "what") {
		case 0:
			f.Right[at] = uint32(value)
		case 1:
			f.Column[at] = int32(value)
		case 2:
			f.Value[at] = float64(value)
		case 3:
			f.Roots[at%len(f.Roots)] = int32(value)
		case 4:
			f.Sets = f.Sets[:at%len(f.Sets)]
		case 5:
			f.Shares = f.Shares[:at%len(f.Shares)]
		case 6:
			f.Classes = value
		case 7:
			f.Base = f.Base[:at%len(f.Base)]
		}
		damaged, _ := json.Marshal(f)
		var m TreeModel
		if json.Unmarshal(damaged, &m) != nil {
			refused++
			return
		}
		if _, err := m.Predict(nil, rows.Features); err != nil {
			t.Fatal(err)
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

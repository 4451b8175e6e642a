package rows

import (
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/tensor"
)

// Rows that were shared are whole: numbers and class, as many as were asked for.
func TestSpreadKeepsRowsWhole(t *testing.T) {
	var numbers tensor.Vector
	var labels []uint8
	for i := range 90 {
		numbers, labels = append(numbers, float32(i), float32(i)/3), append(labels, uint8(i%3))
	}
	own, err := dataset.NewRows(numbers, labels, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	same, err := Share{}.Spread(t.Context(), table.Alone{}, own)
	if err != nil || same != own {
		t.Errorf("rows move unasked: %v", err)
	}
	some, err := Share{Table: settings.Table{ShareRows: 40}}.Spread(t.Context(), table.Alone{}, own)
	if err != nil || some.Len() != 40 || some.Classes() != 3 {
		t.Fatalf("%+v, %v", some, err)
	}
	var b dataset.Batch
	some.Fill(&b, 0, 40)
	var seen []float32
	for i, label := range b.Labels {
		x := b.X[2*i]
		if seen = append(seen, x); b.X[2*i+1] != x/3 || int(label) != int(x)%3 {
			t.Errorf("row %d is torn: %v of class %d", i, b.X[2*i:2*i+2], label)
		}
	}
	if slices.Sort(seen); len(slices.Compact(seen)) != 40 {
		t.Errorf("rows are there twice: %v", seen)
	}
}

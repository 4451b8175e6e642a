package rows

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// TestWideRowsAreFewAtATime: the values of prepared rows in memory are bounded, however wide rows are.
func TestWideRowsAreFewAtATime(t *testing.T) {
	for columns, want := range map[int]int{1: 4096, 256: 4096, 1024: 1024, 5000: 209} {
		f := learn.File{Pipeline: &prepare.Pipeline{Input: table.Schema{}}}
		for i := range columns {
			f.Pipeline.Input.Fields = append(f.Pipeline.Input.Fields, table.Field{Name: fmt.Sprint(i)})
		}
		if got, err := BatchRows(f, 4096); err != nil || got != want {
			t.Errorf("%d columns: %d rows, %v; want %d", columns, got, err, want)
		}
	}
	if got, err := BatchRows(learn.File{}, 4096); got != 4096 || err != nil {
		t.Errorf("without a pipeline %d rows, %v", got, err)
	}
}

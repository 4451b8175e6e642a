package read

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// TestTextsOfAllColumnsAreBounded shows that the texts carried from batch to batch are bounded over all
// columns, too, however many those are.
func TestTextsOfAllColumnsAreBounded(t *testing.T) {
	schema := &table.Schema{}
	for i := range 2 * maxAllBytes / maxValueBytes {
		schema.Fields = append(schema.Fields, table.Field{Name: fmt.Sprint(i), Kind: table.Category})
	}
	b := newBuilder(schema, Config{}, DefaultBatchRows)
	for i := range b.columns {
		b.field(i, []byte("x"))
		b.columns[i].bytes = maxValueBytes * 3 / 4 // by itself it may go on
	}
	b.end(0)
	if b.batch(); b.columns[0].bytes > 0 || len(b.columns[0].list) > 0 {
		t.Errorf("all go on: %d bytes in each of %d", b.columns[0].bytes, len(b.columns))
	}
}

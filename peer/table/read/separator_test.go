package read

import (
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// TestWritingIsOfFilesThatHaveOne shows that what stands between fields and before fractions changes nothing
// in files of JSON lines, or is refused.
func TestWritingIsOfFilesThatHaveOne(t *testing.T) {
	path := written(t, "a.jsonl", "{\"a\":1.5}\n{\"a\":2.5}\n")
	if r, err := Open(t.Context(), []string{path}, Config{Separator: ';', Point: ','}); err == nil {
		t.Errorf("with a comma before fractions: %v", r.Schema())
	}
	r, err := Open(t.Context(), []string{path}, Config{Separator: ';'})
	if err != nil || r.Schema().Fields[0].Kind != table.Number {
		t.Errorf("%v, %v", r, err)
	}
}

package summary

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// flights are the real data, in one batch.
func flights(t *testing.T) *table.Batch {
	t.Helper()
	const path = "../../../../shared/data/flights/flights.csv.gz"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("the real data is not there: ", err)
	}
	files, err := read.Open(t.Context(), []string{path}, read.Config{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := table.Hold(t.Context(), files.Rows, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	b, err := table.Concat(all...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The flights, by carrier at four members.
func TestFlights(t *testing.T) {
	b := flights(t)
	c := Config{Target: "arr_delay>15", Drop: []string{"dep_delay"}}
	want, err := together(t, c, table.Held(b))
	if err != nil {
		t.Fatal(err)
	}
	carrier := b.Find("carrier").Codes
	got, err := together(t, c, apart(b, 4, func(row int) int { return int(carrier[row]) % 4 })...)
	if err != nil {
		t.Fatal(err)
	}
	if same(t, got, want); fmt.Sprint(got.Unrelated(0.005)) != fmt.Sprint(want.Unrelated(0.005)) || len(got.Unrelated(0.005)) == 0 {
		t.Errorf("unrelated are %q, and of one member %q", got.Unrelated(0.005), want.Unrelated(0.005))
	}
	for _, c := range got.Columns {
		if c.Numbers != nil {
			_, _, _, sorted := plain(b.Find(c.Name).Numbers)
			for _, q := range c.Quantiles {
				if at := sorted[int(q.Share*float64(len(sorted)-1))]; !(math.Abs(q.Value-at) <= q.Error+1e-9+1e-3*math.Abs(at)) {
					t.Errorf("%s: %+v, want about %v", c.Name, q, at)
				}
			}
		}
	}
}

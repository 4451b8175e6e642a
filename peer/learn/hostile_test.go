package learn_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// A model of no classes would have whoever names the likeliest look where there is none.
func TestFilesOfNoClasses(t *testing.T) {
	content := []byte(`{"classes":[],"kind":"linear","model":{"columns":["x"],"coefficients":[1],"intercept":0}}`)
	var file bytes.Buffer
	sealed := table.Sealed{Magic: "murmuration model", Version: 1, Most: 1 << 20}
	if err := sealed.Write(&file, "linear", content); err != nil {
		t.Fatal(err)
	}
	if _, err := learn.Load(&file); !errors.Is(err, learn.ErrModelFile) {
		t.Errorf("got %v, want ErrModelFile", err)
	}
}

var errUnread = errors.New("cannot be read any more")

// Rows that one member cannot read again are an error at all: nobody waits for its sums.
func TestRowsThatOneCannotReadAgain(t *testing.T) {
	for _, test := range []bool{false, true} {
		all := sales(200)
		task := learn.Task{Plan: prepare.Plan{Target: "sold", Split: "hash:7/10"}, Learner: learn.Linear{Ridge: 1}}
		table.Together(2, func(flock table.Flock, i int) {
			mine := all.Keep(func(row int) bool { return row%2 == i })
			prepared, own, err := task.Prepare(t.Context(), flock, table.Held(mine))
			if err != nil {
				t.Error(err)
				return
			}
			held, want := own, table.ErrMember
			if i == 1 {
				bad := table.Filtered(own, func(*table.Batch) (*table.Batch, error) { return nil, errUnread })
				if held, want = bad, errUnread; !test {
					own = bad
				}
			}
			_, err = task.Learn(context.Background(), flock, prepared, own, held)
			if !errors.Is(err, want) {
				t.Errorf("member %d, held out %t: %v, want %v", i, test, err, want)
			}
		})
	}
}

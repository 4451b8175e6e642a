package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/table"
)

// What is handed in is not changed, what is returned is each one's own, and sums have the same bytes each time.
func TestTogether(t *testing.T) {
	for range 20 {
		table.Together(3, func(flock table.Flock, i int) {
			mine, data := []float64{[]float64{1e16, 1, -1e16}[i], -1}, []byte{byte(i)}
			sum, n, err := flock.Sum(t.Context(), "sum", mine)
			if n != 3 || err != nil || !slices.Equal(sum, []float64{0, -3}) { // 1e16+1 is 1e16
				t.Errorf("the sum is %v of %d, %v", sum, n, err)
			}
			clear(sum)
			most, n, err := flock.Max(t.Context(), "most", mine)
			if n != 3 || err != nil || !slices.Equal(most, []float64{1e16, -1}) {
				t.Errorf("the largest are %v of %d, %v", most, n, err)
			}
			clear(mine)
			all, err := flock.Gather(t.Context(), "list", data)
			if err != nil || len(all) != 3 || string(slices.Concat(all...)) != "\x00\x01\x02" || data[0] != byte(i) {
				t.Errorf("the list is %q, %v", all, err)
			}
			clear(all[0])
			data[0] = 9
			if nothing, n, err := flock.Sum(t.Context(), "nothing", nil); n != 3 || err != nil || len(nothing) != 0 {
				t.Errorf("no numbers are %v of %d, %v", nothing, n, err)
			}
		})
	}
	table.Together(0, func(table.Flock, int) { t.Error("a member of none") })
	table.Together(-1, func(table.Flock, int) { t.Error("a member of less") })
}

// Members that do not do the same have an error, all and also those that come late: nobody waits for ever.
func TestTogetherUnlike(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, f table.Flock, i int) error{
		"names": func(ctx context.Context, f table.Flock, i int) error {
			_, err := f.Gather(ctx, fmt.Sprint(i), nil)
			return err
		},
		"lengths": func(ctx context.Context, f table.Flock, i int) error {
			_, _, err := f.Sum(ctx, "s", make([]float64, i))
			return err
		},
		"kinds": func(ctx context.Context, f table.Flock, i int) (err error) {
			if i == 0 {
				_, _, err = f.Sum(ctx, "s", []float64{1})
			} else {
				_, _, err = f.Max(ctx, "s", []float64{1})
			}
			return err
		},
		"a name twice": func(ctx context.Context, f table.Flock, _ int) error {
			if _, err := f.Gather(ctx, "twice", nil); err != nil {
				return nil
			}
			_, _, err := f.Sum(ctx, "twice", nil)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			table.Together(3, func(f table.Flock, i int) {
				if err := call(t.Context(), f, i); err == nil || !strings.Contains(err.Error(), "each name once") {
					t.Errorf("%s: member %d: %v", name, i, err)
				}
				if _, err := f.Gather(t.Context(), "later", nil); err == nil {
					t.Errorf("%s: member %d goes on", name, i)
				}
			})
		})
	}
}

// The others go on without a member that has returned, also when they wait for it already.
func TestTogetherAMemberLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table.Together(3, func(flock table.Flock, i int) {
			for call := range 4 {
				if i == 1 && call == 2 {
					synctest.Wait()
					return
				}
				want := 3
				if call >= 2 {
					want = 2
				}
				if sum, n, err := flock.Sum(t.Context(), fmt.Sprint(call), []float64{1}); n != want || err != nil || sum[0] != float64(want) {
					t.Errorf("call %d of member %d: %v of %d, %v; want %d", call, i, sum, n, err, want)
				}
			}
		})
	})
}

// A call ends with its context, also before it begins; the others' go on.
func TestTogetherEndsWithContexts(t *testing.T) {
	cause := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{})
		table.Together(3, func(flock table.Flock, i int) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if i == 1 {
				go func() {
					synctest.Wait()
					end(cause)
				}()
			}
			if i == 2 {
				<-left
			}
			if _, n, err := flock.Sum(ctx, "s", []float64{1}); i == 1 && !errors.Is(err, cause) || i != 1 && (err != nil || n != 2) {
				t.Errorf("member %d: %d, %v", i, n, err)
			}
			if i == 1 { // it leaves, and takes what it brought with it
				defer time.AfterFunc(time.Second, func() { close(left) })
				if _, err := flock.Gather(ctx, "other", nil); !errors.Is(err, cause) {
					t.Error(err)
				}
			}
		})
	})
}

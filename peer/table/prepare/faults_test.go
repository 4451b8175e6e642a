package prepare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// left are the rows that Distinct leaves at each member.
func left(t *testing.T, parts ...*table.Batch) []int {
	t.Helper()
	counts := make([]int, len(parts))
	table.Together(len(parts), func(m table.Flock, i int) {
		keep, _, err := Distinct(t.Context(), table.Scope(m, "d"), table.InMemory(parts[i]))
		if err != nil {
			t.Error(err)
			return
		}
		for b, err := range table.Filtered(table.InMemory(parts[i]), keep)(t.Context()) {
			if err != nil {
				t.Error(err)
				return
			}
			counts[i] += b.Rows
		}
	})
	return counts
}

// TestMembersWithTheSameRows shows that one of them keeps those, not both.
func TestMembersWithTheSameRows(t *testing.T) {
	b := batch(numbers("x", 1, 2, 3))
	if got := left(t, b, b, b); !slices.Equal(got, []int{3, 0, 0}) {
		t.Errorf("rows left: %v", got)
	}
}

// TestRowsAreToldApart shows that no character in a text makes unlike rows equal.
func TestRowsAreToldApart(t *testing.T) {
	unlike := batch(texts("a", "p\x01q", "p"), texts("b", "r", "q\x01r"))
	if got := left(t, unlike); got[0] != 2 {
		t.Errorf("%d rows left of two that differ", got[0])
	}
	alike := batch(numbers("x", 0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000123)))
	if got := left(t, alike); got[0] != 2 {
		t.Errorf("%d rows left of 0, -0 and two that are missing", got[0])
	}
}

func TestAValueNamedOther(t *testing.T) {
	b := batch(texts("city", "a", "other", "z"))
	stage := fitted(t, []*table.Batch{batch(texts("city", "a", "other", "a"))}, func() table.Stage { return &OneHot{} })
	out := transformed(t, stage, b)
	if len(out.Columns) != 2 || fmt.Sprint(out.Find("city=other").Numbers) != "[0 1 1]" {
		t.Errorf("columns %v", out.Columns)
	}
}

// TestMostlyOneValue shows that fences do not make a constant of a column of few ones.
func TestMostlyOneValue(t *testing.T) {
	b := batch(numbers("x", 0, 0, 0, 0, 0, 0, 0, 1))
	stage := fitted(t, []*table.Batch{b}, func() table.Stage { return &Outliers{} })
	if got := transformed(t, stage, b).Columns[0].Numbers; got[7] != 1 {
		t.Errorf("numbers %v", got)
	}
}

// TestMembersThatSendWhatIsNotSound shows that nothing panics, and that
// what is no list of columns is an error.
func TestMembersThatSendWhatIsNotSound(t *testing.T) {
	b := table.InMemory(batch(numbers("x", 1, 2), texts("c", "a", "b")))
	for _, sent := range []string{`{"x":null,"c":null}`, `{"x":{"levels":[[1]],"count":1}}`, `{"x":{"moments":{},"sketch":{"levels":[[1]]}}}`, `[]`} {
		for _, stage := range []table.Stage{&Bins{}, &Outliers{}, &Impute{By: Median}, &Codes{}, &MinMax{}} {
			for _, order := range []bool{true, false} {
				err := stage.Fit(t.Context(), table.Scope(crook{sent, order}, "f"), b)
				if err == nil && sent == "[]" {
					t.Errorf("%s is taken by %T", sent, stage)
				}
			}
		}
	}
}

// crook is another member that sends what is not sound, before or after this one.
type crook struct {
	sent  string
	first bool
}

func (c crook) Sum(_ context.Context, _ string, v []float64) ([]float64, int, error) {
	return v, 2, nil
}
func (c crook) Max(_ context.Context, _ string, v []float64) ([]float64, int, error) {
	return v, 2, nil
}
func (c crook) Gather(_ context.Context, _ string, data []byte) ([][]byte, error) {
	if c.first {
		return [][]byte{[]byte(c.sent), data}, nil
	}
	return [][]byte{data, []byte(c.sent)}, nil
}

// TestHashesNeedNoPass shows that what learns only names reads one batch.
func TestHashesNeedNoPass(t *testing.T) {
	for _, stage := range []table.Stage{&Buckets{}, &NGrams{}} {
		read := 0
		rows := func(context.Context) iter.Seq2[*table.Batch, error] {
			return func(yield func(*table.Batch, error) bool) {
				for range 5 {
					if read++; !yield(batch(texts("c", "a")), nil) {
						return
					}
				}
			}
		}
		if err := stage.Fit(t.Context(), table.Alone{}, rows); err != nil || read != 1 {
			t.Errorf("%T reads %d batches (%v)", stage, read, err)
		}
	}
}

// TestEachStageIsReadBack compares what stages that were read back make, bit for bit.
func TestEachStageIsReadBack(t *testing.T) {
	b := batch(numbers("x", 1e9, 1e9+1./3, math.NaN(), -7, 0.1), numbers("y", 0, 1, 0, 1, 1), texts("c", "b", "", "a", "b", "late again"))
	for name, make := range Kinds() {
		stage := make()
		if d, ok := stage.(*DropUseless); ok {
			d.Target = "y"
		}
		if err := stage.Fit(t.Context(), table.Alone{}, table.InMemory(b)); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(stage)
		if err != nil {
			t.Fatal(err)
		}
		again := Kinds()[name]()
		if err := json.Unmarshal(data, again); err != nil {
			t.Fatal(err)
		}
		want, got := transformed(t, stage, b), transformed(t, again, b)
		if fmt.Sprintf("%x", hashOfAll(want)) != fmt.Sprintf("%x", hashOfAll(got)) || len(want.Columns) == 0 {
			t.Errorf("%s: %v\nwant %v", name, got.Columns, want.Columns)
		}
	}
}

func hashOfAll(b *table.Batch) (all []uint64) {
	for row := range b.Rows {
		all = append(all, hashOf(b, row))
	}
	return all
}

func TestAPipelineOfANewerRelease(t *testing.T) {
	var file bytes.Buffer
	if err := (&Pipeline{}).Write(&file); err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(file.String(), fileMagic+" 1", fileMagic+" 2", 1)
	if p, err := Read(strings.NewReader(newer)); p != nil || !errors.Is(err, ErrPipeline) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("%v, %v", p, err)
	}
	endless := strings.NewReader(strings.Repeat(fileMagic, 1000))
	if _, err := Read(endless); !errors.Is(err, ErrPipeline) || endless.Len() == 0 {
		t.Errorf("%v, with %d bytes unread", err, endless.Len())
	}
}

func TestAnInfiniteNumberIsNamed(t *testing.T) {
	rows := table.InMemory(batch(numbers("x", 1, math.Inf(1)), numbers("y", 0, 1)))
	if err := (&DropUseless{Target: "y"}).Fit(t.Context(), table.Alone{}, rows); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Error(err)
	}
}

// TestAMemberWithoutRowsTakesItsShare shows that one that knows no columns gets rows like all.
func TestAMemberWithoutRowsTakesItsShare(t *testing.T) {
	table.Together(3, func(m table.Flock, i int) {
		rows := []*table.Batch{nil, nil, {}}[i]
		if i == 0 {
			rows = batch(numbers("x", 1, 2, 3, 4), numbers("y", 1, 2, 3, 4))
		}
		got, err := Share(t.Context(), table.Scope(m, "s"), rows, Sharing{Rows: 1, Bytes: 24})
		if err != nil || got.Rows != 1 || len(got.Columns) != 2 || got.Columns[1].Name != "y" {
			t.Errorf("member %d: %+v (%v)", i, got, err)
		}
	})
}

// TestUnlikeRowsAreNotShared shows that a fault of one is an error at all, before rows move.
func TestUnlikeRowsAreNotShared(t *testing.T) {
	for what, other := range map[string]*table.Batch{`"z"`: batch(numbers("z", 1)), `"c"`: batch(texts("c", "a"))} {
		table.Together(2, func(m table.Flock, i int) {
			rows := batch(numbers("x", 1))
			if i == 1 {
				rows = other
			}
			_, err := Share(t.Context(), table.Scope(m, "s"), rows, Sharing{})
			if err == nil || !strings.Contains(err.Error(), what) && !errors.Is(err, table.ErrMember) {
				t.Errorf("member %d: %v, want %s", i, err, what)
			}
		})
	}
}

package table

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// keysOf are the keys of the rows that a filter keeps.
func keysOf(t *testing.T, b *Batch, f Filter) (keys []int64) {
	t.Helper()
	kept, err := f(b)
	if err != nil {
		t.Fatal(err)
	}
	for row := range kept.Rows {
		keys = append(keys, kept.Key(row))
	}
	return keys
}

func parsed(t *testing.T, text string) Split {
	t.Helper()
	s, err := ParseSplit(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// many are rows of which "c" has 50 values and "n" 20, some missing.
func many(first int64, rows int) *Batch {
	numbers, texts := make([]float64, rows), make([]string, rows)
	for i := range rows {
		key := first + int64(i)
		numbers[i], texts[i] = float64(key%20), fmt.Sprint("value", key%50)
		if key%97 == 0 {
			numbers[i], texts[i] = math.NaN(), ""
		}
	}
	return rowsOf(first, numbers, texts)
}

func TestSplitByRow(t *testing.T) {
	b := rowsOf(15, make([]float64, 12), make([]string, 12))
	s := parsed(t, "row:7/10")
	if got := keysOf(t, b, s.Train()); !slices.Equal(got, []int64{15, 16, 20, 21, 22, 23, 24, 25, 26}) {
		t.Errorf("train: %v", got)
	}
	if got := keysOf(t, b, s.Test()); !slices.Equal(got, []int64{17, 18, 19}) {
		t.Errorf("test: %v", got)
	}
	s = parsed(t, "")
	if train, test := keysOf(t, b, s.Train()), keysOf(t, b, s.Test()); len(train) != 12 || len(test) != 0 {
		t.Errorf("no split: %v and %v", train, test)
	}
}

// Every row is on one side, the sides have their shares, and rows of one value stay together,
// whatever batch they are in.
func TestSplitByHash(t *testing.T) {
	for _, text := range []string{"hash:7/10", "hash:c:7/10", "hash:n:1/2"} {
		s := parsed(t, text)
		sides := map[string]bool{} // of values
		train, test := 0, 0
		for _, b := range []*Batch{many(0, 3000), many(3000, 7000)} {
			in, out := keysOf(t, b, s.Train()), keysOf(t, b, s.Test())
			all := slices.Sorted(slices.Values(slices.Concat(in, out)))
			if len(all) != b.Rows || len(slices.Compact(all)) != b.Rows {
				t.Fatalf("%s: %d and %d of %d rows", text, len(in), len(out), b.Rows)
			}
			train, test = train+len(in), test+len(out)
			for _, key := range slices.Concat(in, out) {
				if key%97 == 0 || s.column == "" {
					continue
				}
				value := fmt.Sprint(key % map[string]int64{"c": 50, "n": 20}[s.column])
				side, ok := sides[value]
				if now := slices.Contains(in, key); ok && side != now {
					t.Fatalf("%s: value %s is on both sides", text, value)
				}
				sides[value] = slices.Contains(in, key)
			}
		}
		want := map[string]float64{"": 0.02, "c": 0.15, "n": 0.25}[s.column]
		if share := float64(train) / float64(train+test); math.Abs(share-float64(s.from)/float64(s.of)) > want {
			t.Errorf("%s: %.3f of the rows train", text, share)
		}
	}
}

// The hashes are a promise: who splits with a later version gets the same rows.
func TestSplitIsStable(t *testing.T) {
	if got := keysOf(t, many(1, 30), parsed(t, "hash:7/10").Test()); !slices.Equal(got, []int64{4, 8, 9, 15, 19, 20, 29, 30}) {
		t.Errorf("by row: %v", got)
	}
	if got := keysOf(t, many(1, 30), parsed(t, "hash:c:7/10").Test()); !slices.Equal(got, []int64{3, 15, 17, 26, 28, 30}) {
		t.Errorf("by a value: %v", got)
	}
}

func TestFolds(t *testing.T) {
	for _, text := range []string{"fold:5", "fold:c:5"} {
		folds, err := ParseFolds(text)
		if err != nil || len(folds) != 5 {
			t.Fatalf("%d folds, %v", len(folds), err)
		}
		b := many(0, 5000)
		held := map[int64]int{}
		for _, f := range folds {
			test := keysOf(t, b, f.Test())
			if train := keysOf(t, b, f.Train()); len(train)+len(test) != b.Rows || len(test) < 300 {
				t.Errorf("%s: %d rows train, %d are held out", text, len(train), len(test))
			}
			for _, key := range test {
				held[key]++
			}
		}
		for key := range int64(5000) {
			if held[key] != 1 {
				t.Fatalf("%s: row %d is held out %d times", text, key, held[key])
			}
		}
	}
}

func TestSplitsThatAreNone(t *testing.T) {
	for _, text := range []string{"row", "row:", "row:7", "row:0/10", "row:10/10", "row:a/b", "row:c:7/10", "rows:7/10", "hash:c", "hash:c:7/10000000", "7/10"} {
		if _, err := ParseSplit(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) || !strings.Contains(err.Error(), `want "row:7/10"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "fold", "fold:1", "fold:x", "fold:c:1", "row:7/10", "fold:5000"} {
		if _, err := ParseFolds(text); err == nil || !strings.Contains(err.Error(), `want "fold:5"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := parsed(t, "hash:absent:7/10").Train()(many(0, 3)); err == nil || !strings.Contains(err.Error(), `"absent"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

func TestShards(t *testing.T) {
	batches := []*Batch{many(0, 3000), many(3000, 7000)}
	for _, c := range []struct {
		text string
		most int // rows of a peer
	}{{"rows", 2600}, {"by=c", 2800}, {"by=n", 2600}} {
		shard, err := ParseShard(c.text)
		if err != nil {
			t.Fatal(err)
		}
		filters, err := shard.Among(context.Background(), InMemory(batches...), 4, 1)
		if err != nil {
			t.Fatal(err)
		}
		owner, ofValue := map[int64]int{}, map[int64]int{}
		for peer, f := range filters {
			rows := 0
			for _, b := range batches {
				keys := keysOf(t, b, f)
				rows += len(keys)
				for _, key := range keys {
					if other, ok := owner[key]; ok {
						t.Fatalf("%s: row %d belongs to %d and %d", c.text, key, other, peer)
					}
					owner[key] = peer
					if c.text != "by=c" || key%97 == 0 {
						continue
					}
					if other, ok := ofValue[key%50]; ok && other != peer {
						t.Fatalf("value %d belongs to %d and %d", key%50, other, peer)
					}
					ofValue[key%50] = peer
				}
			}
			if rows > c.most || rows < 2000 {
				t.Errorf("%s: peer %d has %d rows of 10,000", c.text, peer, rows)
			}
		}
		if len(owner) != 10_000 {
			t.Errorf("%s: %d rows belong to somebody", c.text, len(owner))
		}
	}
	for _, text := range []string{"", "row", "by=", "by", "c"} {
		if _, err := ParseShard(text); err == nil || !strings.Contains(err.Error(), `"by=COLUMN"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	shard, _ := ParseShard("by=absent")
	if _, err := shard.Among(context.Background(), InMemory(batches...), 4, 1); err == nil || !strings.Contains(err.Error(), `"absent"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

// Peers whose split is by the same hash as their shard would have all rows on one side.
func TestSplitAndShardAreIndependent(t *testing.T) {
	shard, _ := ParseShard("rows")
	filters, err := shard.Among(context.Background(), nil, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := parsed(t, "hash:1/2")
	for peer, f := range filters {
		source := Filtered(InMemory(many(0, 10_000)), f, s.Train(), Drop("c"))
		for b, err := range source(context.Background()) {
			if err != nil || b.Rows < 2300 || b.Rows > 2700 || len(b.Columns) != 1 {
				t.Errorf("peer %d trains on %d rows, %v", peer, b.Rows, err)
			}
		}
	}
	for b := range Filtered(InMemory(many(0, 3)), parsed(t, "").Test())(context.Background()) {
		t.Errorf("a batch without rows: %+v", b)
	}
	for _, err := range Filtered(InMemory(many(0, 3)), Drop("absent"))(context.Background()) {
		if err == nil || !strings.Contains(err.Error(), `"absent"`) {
			t.Errorf("dropping what is not there: %v", err)
		}
	}
}

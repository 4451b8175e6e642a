package summary

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plain describes numbers by sorting them.
func plain(values []float64) (mean, std, skew float64, sorted []float64) {
	for _, x := range values {
		if x == x {
			sorted, mean = append(sorted, x), mean+x
		}
	}
	slices.Sort(sorted)
	n, off, squares, cubes := float64(len(sorted)), 0.0, 0.0, 0.0
	mean /= n
	for _, x := range sorted {
		off += (x - mean) / n
	}
	for _, x := range sorted {
		d := (x - mean) - off
		squares, cubes = squares+d*d, cubes+d*d*d
	}
	std = math.Sqrt(squares / (n - 1))
	return mean + off, std, n / (n - 1) / (n - 2) * cubes / (std * std * std), sorted
}

// What is told of numbers is what sorting them says; quantiles are off by their errors at most, and those are small.
func TestNumbersArePlain(t *testing.T) {
	b := drawn(5000, 3)
	s, err := together(t, Config{}, apart(b, 3, func(row int) int { return row % 3 })...)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Columns[:5] {
		mean, std, skew, sorted := plain(b.Columns[i].Numbers)
		for what, x := range map[string][2]float64{"mean": {c.Mean, mean}, "std": {c.Std, std}, "skew": {c.Skew, skew}, "min": {c.Min, sorted[0]}, "max": {c.Max, sorted[len(sorted)-1]}} {
			if math.Abs(x[0]-x[1]) > 1e-9*max(1, math.Abs(x[1])) {
				t.Errorf("%s of %s is %v, want %v", what, c.Name, x[0], x[1])
			}
		}
		if len(c.Quantiles) != len(shares) || c.Missing != int64(5000-len(sorted)) {
			t.Errorf("%s: %d missing, %+v", c.Name, c.Missing, c.Quantiles)
		}
		for _, q := range c.Quantiles {
			at := q.Share * float64(len(sorted)-1)
			low, high := sorted[int(at)], sorted[int(math.Ceil(at))]
			want := low + (at-math.Floor(at))*(high-low)
			if math.Abs(q.Value-want) > q.Error+1e-12*math.Abs(want) || q.Error > 1e-3*max(math.Abs(want), 1) {
				t.Errorf("%s: %+v, want %v", c.Name, q, want)
			}
			if c.Name == "whole" && q.Error != 0 {
				t.Errorf("%+v is not exact", q)
			}
		}
		h, from := c.Histogram, 0
		for j, rows := range h.Rows {
			to := sorted[from:]
			if j < len(h.Rows)-1 {
				at, _ := slices.BinarySearch(sorted, h.Edges[j+1])
				to = sorted[from:at]
			}
			if from += len(to); int64(len(to)) != rows || rows > 0 && rows < DefaultLeast {
				t.Errorf("%s: %d rows from %v to %v, want %d", c.Name, rows, h.Edges[j], h.Edges[j+1], len(to))
			}
		}
	}
}

// Whatever the numbers, ends and quantiles are those of the sorted ones, quantiles within their errors.
func TestQuantilesWithinTheirErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(
			rapid.Float64Range(-maxNumber, maxNumber), rapid.Float64Range(-1, 1),
			rapid.Map(rapid.IntRange(-300, 300), func(i int) float64 { return float64(i) }),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 5e-324, math.NaN(), 1 << 53, maxNumber}),
		), 1, 60).Draw(t, "values")
		_, _, _, sorted := plain(values)
		s, err := together(t, Config{Least: 1}, apart(batch(numbers("x", values...)), 2, func(row int) int { return row % 2 })...)
		if err != nil {
			t.Fatal(err)
		}
		c := s.Columns[0]
		if len(sorted) == 0 {
			if !c.Withheld || c.Missing != s.Rows {
				t.Fatalf("%+v of no number", c)
			}
			return
		}
		rows := int64(0)
		for _, n := range c.Histogram.Rows {
			rows += n
		}
		if c.Min != sorted[0] || c.Max != sorted[len(sorted)-1] || rows != int64(len(sorted)) || len(c.Quantiles) != len(shares) {
			t.Fatalf("%+v of %v", c.Numbers, sorted)
		}
		for _, q := range c.Quantiles {
			at := q.Share * float64(len(sorted)-1)
			low, high := sorted[int(at)], sorted[int(math.Ceil(at))]
			want := (1-at+math.Floor(at))*low + (at-math.Floor(at))*high
			if !(math.Abs(q.Value-want) <= q.Error+1e-12*max(math.Abs(low), math.Abs(high))) {
				t.Fatalf("%+v, want %v of %v", q, want, sorted)
			}
		}
	})
}

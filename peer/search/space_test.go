package search

import (
	"math"
	"testing"
)

// TestEndsOfManyDigits: the ends of a range are values of a grid as they are, and nothing that is drawn is beyond them.
func TestEndsOfManyDigits(t *testing.T) {
	for _, p := range []Parameter{
		{Name: "momentum", Kind: Linear, Low: 0.900007, High: 0.99999}, {Name: "rate", Kind: Log, Low: 0.00012346, High: 0.00012348},
		{Name: "whole", Kind: Linear, Low: 123456, High: 234567, Whole: true},
	} {
		grid, _ := Space{p}.Grid(3, 3)
		if low, high := number(t, grid[0][p.Name]), number(t, grid[len(grid)-1][p.Name]); low != p.Low || high != p.High {
			t.Errorf("%s: a grid from %v to %v of %v to %v", p.Name, low, high, p.Low, p.High)
		}
		for _, one := range (Space{p}).Random(200, 1) {
			if x := number(t, one[p.Name]); x < p.Low || x > p.High {
				t.Errorf("%s: %v is not from %v to %v", p.Name, x, p.Low, p.High)
			}
		}
	}
}

// TestRangesBeyondNumbers are refused: all their values would be one end, or no number.
func TestRangesBeyondNumbers(t *testing.T) {
	for _, p := range []Parameter{
		{Name: "x", Kind: Linear, Low: -math.MaxFloat64, High: math.MaxFloat64}, {Name: "x", Kind: Log, Low: 1e-300, High: 1e300},
		{Name: "x", Kind: Linear, Low: math.Inf(-1), High: 1}, {Name: "x", Kind: Linear, Low: math.NaN(), High: 1},
	} {
		if s := (Space{p}); s.Validate() == nil {
			grid, _ := s.Grid(3, 3)
			t.Errorf("%+v: %v", p, grid)
		}
	}
}

// TestWholeNumbersOfFractionalEnds are those between them; where there is none, the range is refused.
func TestWholeNumbersOfFractionalEnds(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		low, high   float64
		first, last Value
		refused     bool
	}{
		{kind: Linear, low: 1.5, high: 4.5, first: "2", last: "4"}, {kind: Log, low: 0.4, high: 9.9, first: "1", last: "9"},
		{kind: Linear, low: -0.9, high: 0.9, first: "0", last: "0"}, {kind: Linear, low: -1.2, high: 3, first: "-1", last: "3"},
		{kind: Linear, low: 1.2, high: 1.8, refused: true}, {kind: Log, low: 0.1, high: 0.9, refused: true},
	} {
		s := Space{{Name: "x", Kind: c.kind, Low: c.low, High: c.high, Whole: true}}
		if err := s.Validate(); (err != nil) != c.refused {
			t.Errorf("from %v to %v: %v", c.low, c.high, err)
		}
		if c.refused {
			continue
		}
		grid, _ := s.Grid(9, 9)
		if grid[0]["x"] != c.first || grid[len(grid)-1]["x"] != c.last {
			t.Errorf("from %v to %v: a grid of %v", c.low, c.high, grid)
		}
		for _, one := range s.Random(200, 1) {
			if x := number(t, one["x"]); x < c.low || x > c.high || x != math.Trunc(x) || one["x"] == "-0" {
				t.Errorf("from %v to %v: %v", c.low, c.high, one["x"])
			}
		}
	}
}

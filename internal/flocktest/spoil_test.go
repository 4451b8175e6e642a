// Package flocktest has tests of what sums over a flock of which a member is at fault: of targets, stages and
// learners.
package flocktest_test

import (
	"bytes"
	"context"
	"math"
	"regexp"

	"github.com/seed-97356399/murmuration/peer/table"
)

// spoilt is a flock with a member at fault: one of its calls, counted from 0, gives what sound members
// do not. What is fitted over it ends in an error or in something of use.
type spoilt struct {
	Flock table.Flock
	Call  int // which is spoilt, -1 for none
	How   spoil

	Calls   int    // so far
	Numbers []bool // of each call so far: it was a Sum or Max
	Name    string // of the call that was spoilt
	Number  bool   // it was a Sum or Max
	Largest int    // numbers in a vector
}

// spoil changes the result of a call.
type spoil struct {
	Name   string
	Number func(x float64) float64 // of a sum or maximum
	Last   bool                    // the last number only
	Blocks func(all [][]byte) [][]byte
}

var numeral = regexp.MustCompile(`([:\[,])-?\d[0-9.eE+-]*`)

// spoils are all ways that are tried.
func spoils() (all []spoil) {
	each := func(do func(b []byte) []byte) func([][]byte) [][]byte {
		return func(all [][]byte) (out [][]byte) {
			for _, b := range all {
				out = append(out, do(bytes.Clone(b)))
			}
			return out
		}
	}
	written := func(number string) func([][]byte) [][]byte {
		return each(func(b []byte) []byte { return numeral.ReplaceAll(b, []byte("${1}"+number)) })
	}
	blocks := []func([][]byte) [][]byte{
		func([][]byte) [][]byte { return nil },
		each(func([]byte) []byte { return nil }),
		each(func(b []byte) []byte { return b[:len(b)/2] }),
		each(func(b []byte) []byte { return append(b, b...) }),
		each(func([]byte) []byte { return []byte("null") }),
		each(func([]byte) []byte { return []byte("{}") }),
		each(func([]byte) []byte { return []byte("[]") }),
		each(func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }),
		each(func(b []byte) []byte { return bytes.Repeat([]byte{0x7e}, len(b)) }),
		written("-1"), written("1e300"), written("9000000000000000"), written("0"),
		func(all [][]byte) [][]byte { return append(all, all...) },
	}
	numbers := map[string]func(x float64) float64{
		"NaN": func(float64) float64 { return math.NaN() }, "Inf": func(float64) float64 { return math.Inf(1) },
		"-Inf": func(float64) float64 { return math.Inf(-1) }, "-1e300": func(float64) float64 { return -1e300 },
		"1e300": func(float64) float64 { return 1e300 }, "1e18": func(float64) float64 { return 1e18 },
		"negative": func(x float64) float64 { return -x - 1 }, "0": func(float64) float64 { return 0 },
		"more": func(x float64) float64 { return x + 1000 },
	}
	for name, number := range numbers {
		all = append(all, spoil{Name: name, Number: number}, spoil{Name: name + " last", Number: number, Last: true})
	}
	for _, b := range blocks {
		all = append(all, spoil{Name: "blocks", Blocks: b})
	}
	return all
}

func (s *spoilt) is(name string, number bool) bool {
	s.Calls++
	s.Numbers = append(s.Numbers, number)
	if s.Calls-1 != s.Call {
		return false
	}
	s.Name, s.Number = name, number
	return true
}

func (s *spoilt) numbers(name string, v []float64, err error) []float64 {
	s.Largest = max(s.Largest, len(v))
	if s.is(name, true) && s.How.Number != nil && err == nil {
		for i := range v {
			if !s.How.Last || i == len(v)-1 {
				v[i] = s.How.Number(v[i])
			}
		}
	}
	return v
}

// Sum is as table.Flock has it.
func (s *spoilt) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	sum, peers, err := s.Flock.Sum(ctx, name, vector)
	return s.numbers(name, sum, err), peers, err
}

// Max is as table.Flock has it.
func (s *spoilt) Max(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	most, peers, err := s.Flock.Max(ctx, name, vector)
	return s.numbers(name, most, err), peers, err
}

// Gather is as table.Flock has it.
func (s *spoilt) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	all, err := s.Flock.Gather(ctx, name, data)
	if s.is(name, false) && s.How.Blocks != nil && err == nil {
		all = s.How.Blocks(all)
	}
	return all, err
}

// everyCall runs something over a flock without fault, and then with each of its calls spoilt in each way, or of
// the later ones so many, evenly apart. Up to the spoilt call all goes as without fault, so that its kind is known,
// and ways that change nothing of this kind are left out.
func everyCall(flock table.Flock, most int, do func(s *spoilt)) {
	sound := &spoilt{Flock: flock, Call: -1}
	do(sound)
	for call := range sound.Calls {
		if call >= 5 && call%((sound.Calls+most-1)/most) != 0 {
			continue
		}
		for _, how := range spoils() {
			if sound.Numbers[call] != (how.Number != nil) {
				continue
			}
			do(&spoilt{Flock: flock, Call: call, How: how})
		}
	}
}

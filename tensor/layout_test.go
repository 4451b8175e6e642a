package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustLayout(t testing.TB, specs ...Spec) *Layout {
	t.Helper()
	l, err := NewLayout(specs...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func sample(t testing.TB) *Layout {
	return mustLayout(t,
		Spec{Name: "hidden.weight", Shape: []int{4, 3}},
		Spec{Name: "hidden.bias", Shape: []int{4}, Kind: Bias},
		Spec{Name: "norm.mean", Shape: []int{4}, Kind: Norm, Sharing: Local},
		Spec{Name: "words", Shape: []int{5, 2}, Kind: Embedding, Sharing: Frozen},
		Spec{Name: "temperature"},
	)
}

// TestHashGolden pins the hash: peers of different versions compare it.
func TestHashGolden(t *testing.T) {
	for _, c := range []struct {
		layout *Layout
		want   string
	}{
		{mustLayout(t), "79fa1056534ee1a6b0fee3ba4e777070b52750912a21508373b04e5e0026ef15"},
		{sample(t), "a602a676faa59b420bb40afecb479515dda753182d0cc49bffc0e8156706b093"},
	} {
		if got := fmt.Sprintf("%x", c.layout.Hash()); got != c.want {
			t.Errorf("hash of\n%vis %s, want %s", c.layout, got, c.want)
		}
	}
}

// TestHashTellsLayoutsApart changes one thing at a time.
func TestHashTellsLayoutsApart(t *testing.T) {
	seen := map[[32]byte]int{}
	for i, specs := range [][]Spec{
		{},
		{{Name: "a", Shape: []int{2, 3}}},
		{{Name: "b", Shape: []int{2, 3}}},
		{{Name: "a", Shape: []int{3, 2}}},
		{{Name: "a", Shape: []int{6}}},
		{{Name: "a", Shape: []int{2, 3, 1}}},
		{{Name: "a", Shape: []int{2, 3}, Kind: Statistic}},
		{{Name: "a", Shape: []int{2, 3}, Kind: Conv}},
		{{Name: "a", Shape: []int{2, 3}, Sharing: Frozen}},
		{{Name: "a", Shape: []int{2, 3}}, {Name: "b"}},
		{{Name: "b"}, {Name: "a", Shape: []int{2, 3}}},
		{{Name: "ab"}, {Name: "c"}},
		{{Name: "a"}, {Name: "bc"}},
	} {
		hash := mustLayout(t, specs...).Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("layouts %d and %d have one hash", other, i)
		}
		seen[hash] = i
	}
}

func TestLayoutRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shapes := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4), 0, 8).Draw(t, "shapes")
		specs := make([]Spec, len(shapes))
		for i, shape := range shapes {
			specs[i] = Spec{Name: fmt.Sprint("range", i), Shape: shape}
		}
		l, err := NewLayout(specs...)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, shape := range shapes {
			n := 1
			for _, d := range shape {
				n *= d
			}
			r := l.At(i)
			if r.Offset != at || r.Len != n || r.Name != specs[i].Name || !slices.Equal(r.Shape, shape) {
				t.Fatalf("range %d is %+v, want %d values at %d", i, r, n, at)
			}
			if found, ok := l.Lookup(r.Name); !ok || found.Offset != at {
				t.Fatalf("Lookup(%q) = %+v, %v", r.Name, found, ok)
			}
			at += n
		}
		if l.Len() != at || l.Count() != len(shapes) || len(l.Ranges()) != len(shapes) {
			t.Fatalf("%d values in %d ranges, want %d in %d", l.Len(), l.Count(), at, len(shapes))
		}
		if _, ok := l.Lookup("none"); ok {
			t.Fatal("Lookup finds a name that is not there")
		}
	})
}

func TestLayoutFaults(t *testing.T) {
	half := int(^uint(0)>>1) / 8
	for _, c := range []struct {
		name  string
		specs []Spec
		want  []string
	}{
		{"names", []Spec{{}, {Name: "a"}, {Name: "a"}, {Name: "\xff"}, {Name: "__metadata__"}},
			[]string{"range 0", "empty", "range 2", "range 1 has the same name", "not UTF-8", "reserved"}},
		{"long name", []Spec{{Name: strings.Repeat("n", maxNameLen+1)}}, []string{"257 bytes"}},
		{"dimensions", []Spec{{Name: "a", Shape: []int{2, 0}}, {Name: "b", Shape: []int{-1}}},
			[]string{`"a"`, "[2 0]", `"b"`, "[-1]"}},
		{"too many dimensions", []Spec{{Name: "a", Shape: make([]int, maxDims+1)}}, []string{"9 dimensions"}},
		{"overflow of a product", []Spec{{Name: "a", Shape: []int{math.MaxInt, 3}}}, []string{"more than"}},
		{"product that wraps to zero", []Spec{{Name: "a", Shape: []int{1 << 16, 1 << 16, 1 << 16, 1 << 16}}}, []string{"more than"}},
		{"overflow of the sum", []Spec{{Name: "a", Shape: []int{half}}, {Name: "b", Shape: []int{half}}, {Name: "c", Shape: []int{half}}},
			[]string{`"c"`, "longer than"}},
		{"kind and sharing", []Spec{{Name: "a", Kind: 77, Sharing: 88}}, []string{"kind(77)", "sharing(88)"}},
		{"too many ranges", make([]Spec, maxRanges+1), []string{"65537 ranges"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := NewLayout(c.specs...)
			if err == nil {
				t.Fatalf("no error, but %v", l)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

// TestLayoutIsImmutable: neither the caller's specs nor what Ranges returns lead
// back into the layout.
func TestLayoutIsImmutable(t *testing.T) {
	spec := Spec{Name: "a", Shape: []int{2, 3}}
	l := mustLayout(t, spec)
	spec.Shape[0] = 9
	got := l.Ranges()
	got[0].Shape[1] = 9
	got[0].Name = "b"
	if r := l.At(0); r.Name != "a" || !slices.Equal(r.Shape, []int{2, 3}) {
		t.Errorf("the layout changed: %+v", r)
	}
}

func TestLayoutString(t *testing.T) {
	text := sample(t).String()
	for _, want := range []string{
		"31 values in 5 ranges", "dense     shared [4 3] \"hidden.weight\"", "12 bias", "norm      local", "embedding frozen",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestLayoutAccessDoesNotAllocate(t *testing.T) {
	l := sample(t)
	allocs := testing.AllocsPerRun(10, func() {
		for i := range l.Count() {
			r := l.At(i)
			_, _ = l.Lookup(r.Name)
		}
		_ = l.Hash()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestParams(t *testing.T) {
	l := sample(t)
	p := NewParams(l)
	bias, ok := p.Tensor("hidden.bias")
	if !ok || len(bias) != 4 || p.Layout() != l {
		t.Fatalf("bias %v, %v", bias, ok)
	}
	bias[0] = 5
	if p.Vector()[12] != 5 {
		t.Error("writing to a tensor does not change the vector")
	}
	if _ = append(bias, 7); p.Vector()[16] != 0 {
		t.Error("appending to a tensor reaches the next range")
	}
	if _, ok := p.Tensor("none"); ok {
		t.Error("Tensor finds a name that is not there")
	}

	v := make(Vector, l.Len())
	wrapped, err := WrapParams(l, v)
	if err != nil {
		t.Fatal(err)
	}
	if v[3] = 2; wrapped.Vector()[3] != 2 {
		t.Error("WrapParams copies")
	}
	if _, err := WrapParams(l, v[1:]); err == nil || !strings.Contains(err.Error(), "30 values for a layout of 31") {
		t.Errorf("WrapParams of a short vector: %v", err)
	}
}

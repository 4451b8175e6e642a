package dataset

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// variant is the oracle: the picture, flipped or not, and moved by so many pixels.
func variant(pixels []uint8, s Shape, flip bool, down, right int) []uint8 {
	out := make([]uint8, len(pixels))
	for y := range s.Height {
		for x := range s.Width {
			from := x
			if flip {
				from = s.Width - 1 - x
			}
			from -= right
			if row := y - down; row >= 0 && row < s.Height && from >= 0 && from < s.Width {
				copy(out[(y*s.Width+x)*s.Channels:][:s.Channels], pixels[(row*s.Width+from)*s.Channels:])
			}
		}
	}
	return out
}

// A varied picture is one of the allowed variants. Without flips and crops it is
// unchanged.
func TestVariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := Shape{rapid.IntRange(1, 9).Draw(t, "height"), rapid.IntRange(1, 9).Draw(t, "width"), rapid.IntRange(1, 4).Draw(t, "channels")}
		pixels := make([]uint8, shape.Values())
		for i := range pixels {
			pixels[i] = uint8(i + 1)
		}
		a := Augment{Flip: rapid.Bool().Draw(t, "flip"), Crop: rapid.Bool().Draw(t, "crop")}
		v := newAugmenter(a, shape, rapid.Uint64().Draw(t, "seed"))
		reach := 0
		if a.Crop {
			reach = cropPadding
		}
		for range 5 {
			got := v.vary(pixels)
			known := false
			for down := -reach; down <= reach; down++ {
				for right := -reach; right <= reach; right++ {
					known = known || slices.Equal(got, variant(pixels, shape, false, down, right)) ||
						a.Flip && slices.Equal(got, variant(pixels, shape, true, down, right))
				}
			}
			if !known {
				t.Fatalf("%v of %v is %v", a, pixels, got)
			}
		}
	})
}

// Each shift and both sides are equally likely.
func TestVariantsAreEven(t *testing.T) {
	const draws = 20_000
	shape := Shape{9, 9, 1}
	pixels := make([]uint8, shape.Values())
	for i := range pixels {
		pixels[i] = uint8(i + 1)
	}
	v := newAugmenter(Augment{Flip: true, Crop: true}, shape, 1)
	count := make(map[string]int)
	for range draws {
		count[string(v.vary(pixels))]++
	}
	const variants = 2 * (2*cropPadding + 1) * (2*cropPadding + 1)
	if len(count) != variants {
		t.Errorf("%d variants, want %d", len(count), variants)
	}
	for _, n := range count {
		if n < draws/variants/2 || n > 2*draws/variants {
			t.Errorf("a variant comes %d times of %d", n, draws)
		}
	}
}

// A sampler that varies pictures shows them in the same order as one that does not,
// and allocates nothing.
func TestSamplerVaries(t *testing.T) {
	set, err := Glyphs(1, []int32{0, 1, 2, 3, 4, 5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	data := &Data{Train: set}
	still, err := data.Batches(8, 5, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	moving, err := data.Batches(8, 5, Augment{Crop: true})
	if err != nil {
		t.Fatal(err)
	}
	var a, b Batch
	for range 5 {
		if err := errors.Join(still.Next(&a), moving.Next(&b)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Labels, b.Labels) {
			t.Fatalf("labels %d, varied %d", a.Labels, b.Labels)
		}
		if slices.Equal(a.X, b.X) {
			t.Error("nothing varies")
		}
	}
	if n := testing.AllocsPerRun(50, func() { _ = moving.Next(&b) }); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
	if err := errors.Join(still.Close(), moving.Close()); err != nil {
		t.Error(err)
	}
}

func TestParseAugment(t *testing.T) {
	for _, text := range []string{"none", "flip", "crop", "flip+crop"} {
		if a, err := ParseAugment(text); err != nil || a.String() != text {
			t.Errorf("%q became %v, %v", text, a, err)
		}
	}
	for _, text := range []string{"", "crop+flip", "rotate"} {
		if _, err := ParseAugment(text); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if DefaultAugment("cifar10") != (Augment{Flip: true, Crop: true}) || DefaultAugment("mnist") != (Augment{}) {
		t.Error("other defaults")
	}
}

package dataset

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
)

var sheet = flag.String("sheet", "", "draw a contact sheet of glyphs to FILE-train.png and FILE-heldout.png")

// A picture does not depend on which other pictures are drawn.
func TestGlyphsDependOnSeedAndNumberAlone(t *testing.T) {
	all, err := Glyphs(5, seeded.Identity(300))
	if err != nil {
		t.Fatal(err)
	}
	labels := GlyphLabels(5, 300)
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.Int32Range(0, 299), 1, 10).Draw(t, "some")
		drawn, err := Glyphs(5, some)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range some {
			if !bytes.Equal(drawn.Image(i), all.Image(int(k))) || drawn.Label(i) != all.Label(int(k)) || drawn.Label(i) != int(labels[k]) {
				t.Fatalf("picture %d differs when drawn with %v", k, some)
			}
		}
	})
	other, err := Glyphs(6, seeded.Identity(300))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if bytes.Equal(other.Image(i), all.Image(i)) {
			t.Fatalf("picture %d is the same for two seeds", i)
		}
	}
}

func TestGlyphsRefuseNegativeNumbers(t *testing.T) {
	if _, err := Glyphs(1, []int32{3, -1}); err == nil {
		t.Error("picture -1 was drawn")
	}
}

// Pictures are the same on every platform and must not change: recorded accuracies
// depend on them.
func TestGlyphsAreGolden(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		name string
		set  func() (*Set, error)
	}{
		{"train, seed 1", func() (*Set, error) { return Glyphs(1, seeded.Identity(500)) }},
		{"train, seed 2", func() (*Set, error) { return Glyphs(2, seeded.Identity(500)) }},
		{"held out", func() (*Set, error) { return HeldOutGlyphs(500) }},
	} {
		set, err := c.set()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: 500 pictures %s, labels %s, first %v\n", c.name, ztest.Sum32(set.pixels), ztest.Sum32(set.labels), set.labels[:10])
	}
	ztest.Golden(t, "glyphs.txt", out.String())
}

// Digits come equally often, no picture is empty, and the constant by which
// grey levels are scaled is that of the pictures.
func TestGlyphsStatistics(t *testing.T) {
	const n = 10000
	set, err := Glyphs(1, seeded.Identity(n))
	if err != nil {
		t.Fatal(err)
	}
	var count [Classes]int
	squares := 0.0
	for i := range n {
		count[set.Label(i)]++
		ink := 0
		for _, g := range set.Image(i) {
			if g > 100 {
				ink++
			}
			squares += float64(g) * float64(g)
		}
		if ink < 10 {
			t.Errorf("picture %d, a %d, has %d pixels of ink", i, set.Label(i), ink)
		}
	}
	for digit, got := range count {
		if got < n/Classes*9/10 || got > n/Classes*11/10 {
			t.Errorf("%d comes %d times in %d", digit, got, n)
		}
	}
	if rms := math.Sqrt(squares/(n*Inputs)) / 255; math.Abs(rms-glyphScale) > 0.003 {
		t.Errorf("root mean square %.4f, the constant is %.4f", rms, glyphScale)
	}
}

// Widening an outline adds ink, around holes too, and narrowing takes it off:
// the normals of all faces point out.
func TestStrokeWidens(t *testing.T) {
	for _, ttf := range [][]byte{goregular.TTF, gomono.TTF} {
		for digit := range uint8(Classes) {
			ink := func(stroke float32) int {
				p, err := newPen(distortion{height: 20}, [][]byte{ttf})
				if err != nil {
					t.Fatal(err)
				}
				at := p.placement()
				at.stroke = stroke
				pixels := make([]uint8, Inputs)
				p.trace(pixels, p.faces[0][digit], at)
				sum := 0
				for _, g := range pixels {
					sum += int(g)
				}
				return sum
			}
			thin, plain, thick := ink(-0.02), ink(0), ink(0.03)
			if thin >= plain*95/100 || thick <= plain*110/100 {
				t.Errorf("digit %d: ink %d, %d, %d when narrowed, plain, widened", digit, thin, plain, thick)
			}
		}
	}
}

// The largest turn is 20 degrees, as documented.
func TestTurnStaysWithin20Degrees(t *testing.T) {
	p, err := newPen(glyphDistortion, nil)
	if err != nil {
		t.Fatal(err)
	}
	largest := 0.0
	for k := range uint64(20000) {
		p.pcg.Seed(1, seeded.Mix(k))
		at := p.placement()
		largest = max(largest, math.Abs(math.Atan2(float64(at.yx), float64(at.xx))))
	}
	if degrees := largest * 180 / math.Pi; degrees > 20.0001 || degrees < 19.9 {
		t.Errorf("the largest turn is %.3f degrees", degrees)
	}
}

// A contact sheet, for eyes: go test -run Sheet -sheet /tmp/glyphs
func TestSheet(t *testing.T) {
	if *sheet == "" {
		t.Skip("give -sheet FILE to draw one")
	}
	train, err := Glyphs(1, seeded.Identity(360))
	if err != nil {
		t.Fatal(err)
	}
	heldOut, err := HeldOutGlyphs(360)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]*Set{"train": train, "heldout": heldOut} {
		const columns, cell = 30, Side + 2
		page := image.NewGray(image.Rect(0, 0, columns*cell, set.Len()/columns*cell))
		for i := range set.Len() {
			for j, g := range set.Image(i) {
				page.Pix[(i/columns*cell+j/Side)*page.Stride+i%columns*cell+j%Side] = g
			}
		}
		file, err := os.Create(*sheet + "-" + name + ".png")
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(file, page); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkGlyphs(b *testing.B) {
	p, err := newPen(glyphDistortion, [][]byte{goregular.TTF})
	if err != nil {
		b.Fatal(err)
	}
	pixels := make([]uint8, Inputs)
	b.ReportAllocs()
	k := uint64(0)
	for b.Loop() {
		p.draw(pixels, 1, k, glyphLabel(1, k))
		k++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pictures/s")
}

package coding

import "testing"

// TestACourse: a percentage goes in straight lines between points, and stays beyond them.
func TestACourse(t *testing.T) {
	for text, want := range map[string][5]int{ // at 0, 0.15, 0.3, 0.6 and 1
		"30":                {30, 30, 30, 30, 30},
		"30%":               {30, 30, 30, 30, 30},
		"0@0,100@0.3":       {0, 50, 100, 100, 100},
		"80@0.3, 20@0.9":    {80, 80, 80, 50, 20},
		"0@0,0@0.6,100@0.6": {0, 0, 0, 100, 100},
	} {
		course, err := ParseCourse(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, progress := range []float64{0, 0.15, 0.3, 0.6, 1} {
			if got := course.At(progress); got != want[i] {
				t.Errorf("%s at %g: %d %%, want %d", text, progress, got, want[i])
			}
		}
	}
	for _, text := range []string{"", "101", "-1", "x", "50,60", "0@0.5,100@0.3", "0@NaN", "0@1.5", "@0", "5@", "0@0,50", "1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0,1@0"} {
		if course, err := ParseCourse(text); err == nil {
			t.Errorf("%q is taken for %v", text, course)
		}
	}
}

// TestAPlanOfAMoment: the codecs that are offered are those of the whole course, those used are of the moment.
func TestAPlanOfAMoment(t *testing.T) {
	int8, _ := ByName("int8")
	raw, _ := ByName("raw")
	plan := Plan{{Codec: int8, Exact: raw, Course: Course{{0, 0}, {100, 1}}}, {Codec: raw, Exact: raw, Proportion: 100}}
	if ids := plan.Codecs(); len(ids) != 2 {
		t.Errorf("codecs %v are offered", ids)
	}
	var room Plan
	for _, c := range []struct {
		progress float64
		coded    int
	}{{0, 0}, {0.25, 25}, {1, 100}} {
		now := plan.During(&room, c.progress)
		coded := 0
		for turn := range 100 {
			if now.Codec(0, turn).ID == int8.ID {
				coded++
			}
		}
		if coded != c.coded || now.Codec(1, 0).ID != raw.ID {
			t.Errorf("at %g of the run %d of 100 slices are coded, want %d", c.progress, coded, c.coded)
		}
	}
	if n := testing.AllocsPerRun(9, func() { plan.During(&room, 0.5) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

package archtest

import (
	"slices"
	"strings"
	"testing"
)

func TestArchitecture(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := scanned()
	if err != nil {
		t.Fatal(err)
	}
	seen := slices.ContainsFunc(sources, func(s *source) bool { return s.folder == "internal/archtest" && s.name == "doc.go" })
	if !seen {
		t.Fatalf("the scan of %s did not find this package: %d files", root, len(sources))
	}
	for _, violation := range check(sources) {
		t.Error(violation)
	}
}

// The rules themselves: no room twice, a reason for each, only rooms as targets,
// and no circle.
func TestRulesAreSound(t *testing.T) {
	folders := map[string]room{}
	for _, r := range rooms {
		if _, twice := folders[r.folder]; twice {
			t.Errorf("%s has two rules", r.folder)
		}
		if r.why == "" {
			t.Errorf("%s has no reason", r.folder)
		}
		folders[r.folder] = r
	}
	const (
		entered = 1
		left    = 2
	)
	state := map[string]int{}
	var visit func(folder string, trail []string)
	visit = func(folder string, trail []string) {
		switch trail = append(slices.Clone(trail), folder); state[folder] {
		case left:
			return
		case entered:
			t.Errorf("the rules allow a circle: %s", strings.Join(trail, " -> "))
			return
		}
		state[folder] = entered
		for _, target := range folders[folder].may {
			if _, ok := folders[target]; !ok {
				t.Errorf("%s may import %s, which is no room", folder, target)
			}
			if target != folder { // examples may import one another
				visit(target, trail)
			}
		}
		state[folder] = left
	}
	for _, r := range rooms {
		visit(r.folder, nil)
	}
}

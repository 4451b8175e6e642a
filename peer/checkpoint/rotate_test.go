package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRotationCountsWhatCanBeUsed: damaged checkpoints neither take the place of good ones
// nor are removed.
func TestRotationCountsWhatCanBeUsed(t *testing.T) {
	shape := []int{100}
	c := Folder{Dir: t.TempDir(), Run: "r", Dataset: "d", Model: "m", Keep: 3}
	for own := range uint64(3) {
		keep(t, c, own+1, shape, nil)
	}
	damaged := []string{nameOf(2), nameOf(3)}
	for _, name := range damaged {
		path := filepath.Join(c.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)-1] ^= 0x40
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taken, refused, err := c.Load(smallParams(t, shape...))
	if err != nil || filepath.Base(taken.Path) != nameOf(1) {
		t.Fatalf("took up %+v, error %v", taken, err)
	}
	c.refused = refusedPaths(refused)
	for own := range uint64(2) {
		keep(t, c, own+4, shape, nil)
	}
	if names, _ := c.Names(); !slices.Equal(names, []string{nameOf(1), nameOf(2), nameOf(3), nameOf(4), nameOf(5)}) {
		t.Errorf("three are kept that can be used, the folder holds %v", names)
	}
	keep(t, c, 6, shape, nil)
	if names, _ := c.Names(); !slices.Equal(names, append(damaged, nameOf(4), nameOf(5), nameOf(6))) {
		t.Errorf("the oldest that can be used goes, the folder holds %v", names)
	}
}

// TestOneIsKept by a folder of which nobody has said how many.
func TestOneIsKept(t *testing.T) {
	c := Folder{Dir: t.TempDir(), Run: "r"}
	for own := range uint64(2) {
		keep(t, c, own+1, []int{100}, nil)
	}
	if names, err := c.Names(); err != nil || !slices.Equal(names, []string{nameOf(2)}) {
		t.Errorf("the folder holds %v: %v", names, err)
	}
}

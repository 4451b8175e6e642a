package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestCheckpointsThatAreSetAsideStay: a peer that begins anew twice, and counts its checkpoints from one
// each time, has those of both lives; a folder without any stays as it is.
func TestCheckpointsThatAreSetAsideStay(t *testing.T) {
	in := checkpoint.Folder{Dir: t.TempDir()}
	for _, life := range []string{"first", "second", ""} {
		if life != "" {
			if err := os.WriteFile(filepath.Join(in.Dir, "checkpoint-000001.safetensors"), []byte(life), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := setAside(in); err != nil {
			t.Fatal(err)
		}
		if left, err := in.Names(); err != nil || len(left) > 0 {
			t.Errorf("the %s life is gone on from: %q, %v", life, left, err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(in.Dir, "aside-*", "checkpoint-000001.safetensors"))
	all, _ := os.ReadDir(in.Dir)
	if err != nil || len(kept) != 2 || len(all) != 2 {
		t.Errorf("kept: %q among %v, %v", kept, all, err)
	}
}

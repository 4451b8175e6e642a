package main

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
)

// TestFilesOfReleases: an identity and a fitted model of an earlier day are what they were.
// Checkpoints are in package workload.
func TestFilesOfReleases(t *testing.T) {
	const releases = "../../testdata/releases"
	key, err := keys.Read(filepath.Join(releases, "2026-11-25", "node.key"), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := keys.ID(key); err != nil || string(id) != "12D3KooWJyXrQwvEeDqTZgMqU7K5rJrPApYMD4xdU3KoKk2uuo5g" {
		t.Errorf("the identity is %s, error %v", id, err)
	}
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte("size,colour\n4,red\n9,blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, logged := try("predict", "--model", filepath.Join(releases, "2026-11-25", "ridge.model"), "--data", rows)
	if want := "row,prediction\n0,16.898706939689973\n1,26.80628917239269\n"; code != cli.ExitDone || out != want {
		t.Errorf("exit code %d, predictions %q, want %q\n%s", code, out, want, logged)
	}
}

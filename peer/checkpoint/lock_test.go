package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestFolderLock shows what is said of a holder that is not known, and of folders that
// cannot be locked.
func TestFolderLock(t *testing.T) {
	log, seen := observer.New(zap.WarnLevel)
	c := Folder{Dir: filepath.Join(t.TempDir(), "made", "here")}
	if held, err := c.Lock(zap.New(log)); held != nil || err != nil {
		t.Fatalf("of a folder that is not there: %+v, error %v", held, err)
	}
	held, err := c.Make(zap.New(log))
	if seen.Len() > 0 {
		t.Skip("no lock can be taken in this folder: " + seen.All()[0].Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.Truncate(filepath.Join(c.Dir, lockFile), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock(zap.New(log)); !errors.Is(err, ErrInUse) || !strings.HasSuffix(err.Error(), c.Dir+" is in use by another process") {
		t.Errorf("error %v", err)
	}
	file := Folder{Dir: writeText(t, "file", "")}
	if _, err := file.Make(zap.New(log)); err == nil || !strings.Contains(err.Error(), "making the checkpoint folder") {
		t.Errorf("a file: error %v", err)
	}
}

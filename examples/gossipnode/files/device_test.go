package files

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatIsNoFileStays, as /dev/null where root gives it.
func TestWhatIsNoFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	err = Replace(path, 0o644, Text([]byte("x")))
	if info, fault := os.Lstat(path); err == nil || fault != nil || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("replaced: %v, %v, %v", err, info, fault)
	}
}

package keys

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestRunKey shows that a key for a run is written for its owner only, and read again
// without the white space around it; one that could be guessed is refused.
func TestRunKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.key")
	if code, out, stderr := try("keygen", "--run-key", "--out", path); code != cli.ExitDone || out != "" {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != Mode && runtime.GOOS != "windows" {
		t.Errorf("mode %v (%v), want %v", info.Mode().Perm(), err, Mode)
	}
	key, err := ReadRun(path, zap.NewNop())
	if err != nil || len(key) != 2*runKeyBytes {
		t.Fatalf("a key of %d bytes (%v), want %d", len(key), err, 2*runKeyBytes)
	}
	for want, content := range map[string]string{"want 16 to": " guess me \n", "holds 0 bytes": ""} {
		if err := os.WriteFile(path, []byte(content), Mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRun(path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", content, err, want)
		}
	}
	if _, err := ReadRun(path+".missing", zap.NewNop()); err == nil || !strings.Contains(err.Error(), "keygen --run-key") {
		t.Errorf("a key that is not there: %v", err)
	}
}

// TestFilesOfKeysSayWhatTheyAre: one given in the other's place is refused, and a damaged one.
func TestFilesOfKeysSayWhatTheyAre(t *testing.T) {
	folder := t.TempDir()
	own, shared := filepath.Join(folder, "node.key"), filepath.Join(folder, "run.key")
	for _, args := range [][]string{{"keygen", "--out", own}, {"keygen", "--run-key", "--out", shared}} {
		if code, _, stderr := try(args...); code != cli.ExitDone {
			t.Fatal(stderr)
		}
	}
	if _, err := ReadRun(own, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "give that with --key") {
		t.Errorf("a private key as that of the run: %v", err)
	}
	if _, err := Read(shared, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "give that with --run-key") {
		t.Errorf("the run's key as an identity: %v", err)
	}
	text, err := os.ReadFile(shared)
	if err != nil {
		t.Fatal(err)
	}
	digits := strings.Fields(strings.TrimPrefix(string(text), runKeyHeader))[0]
	if key, err := ReadRun(shared, zap.NewNop()); err != nil || string(key) != digits {
		t.Errorf("%q, %v", key, err)
	}
	for want, content := range map[string]string{digits: digits + "\n", "copy the file again": strings.Replace(string(text), digits, digits[1:]+"0", 1)} {
		if err := os.WriteFile(shared, []byte(content), Mode); err != nil {
			t.Fatal(err)
		}
		if key, err := ReadRun(shared, zap.NewNop()); string(key) != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q, %v, want %q", key, err, want)
		}
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// TestRunKey shows that a key for a run is written for its owner only, and read again
// without the white space around it; one that could be guessed is refused.
func TestRunKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.key")
	if code, out, stderr := try("keygen", "--run-key", "--out", path); code != cli.ExitDone || out != "" {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != keyMode && runtime.GOOS != "windows" {
		t.Errorf("mode %v (%v), want %v", info.Mode().Perm(), err, keyMode)
	}
	key, err := readRunKey(path, zap.NewNop())
	if err != nil || len(key) != 2*runKeyBytes {
		t.Fatalf("a key of %d bytes (%v), want %d", len(key), err, 2*runKeyBytes)
	}
	a, err := networkSettings{RunKey: path, Allow: "list"}.admission(zap.NewNop())
	if err != nil || !bytes.Equal(a.Key, key) || a.Allow != "list" {
		t.Errorf("admission %+v, %v", a, err)
	}
	for want, content := range map[string]string{"want 16 to": " guess me \n", "holds 0 bytes": ""} {
		if err := os.WriteFile(path, []byte(content), keyMode); err != nil {
			t.Fatal(err)
		}
		if _, err := readRunKey(path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", content, err, want)
		}
	}
	if _, err := readRunKey(path+".missing", zap.NewNop()); err == nil || !strings.Contains(err.Error(), "keygen --run-key") {
		t.Errorf("a key that is not there: %v", err)
	}
}

// TestLooseRunKey shows that a run's key that others can read is complained of, by run
// and by doctor.
func TestLooseRunKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes here")
	}
	path := filepath.Join(t.TempDir(), "run.key")
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, bytes.Repeat([]byte("k"), peer.MinRunKey), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if _, err := readRunKey(path, outputSettings{LogLevel: "warn"}.newLog(&said)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "chmod 600"); got != want {
			t.Errorf("mode %v: warned %v, want %v: %s", mode, got, want, &said)
		}
		_, found := settings{networkSettings: networkSettings{RunKey: path}}.checkAdmission()
		if got := len(found) == 1 && found[0].Level == levelWarn; got != want {
			t.Errorf("mode %v: doctor finds %+v", mode, found)
		}
	}
}

// TestRefusedForWantOfAKey shows that a peer without the run's key ends at once, and
// says what to do.
func TestRefusedForWantOfAKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.key")
	key := bytes.Repeat([]byte("k"), peer.MinRunKey)
	if err := os.WriteFile(path, key, keyMode); err != nil {
		t.Fatal(err)
	}
	address := patientThat(t, peer.Admission{Key: key})
	code, _, stderr := try("run", "--listen", loopback, "--join", address, "--steps", "10")
	if code != cli.ExitFailed || !strings.Contains(stderr, "same run key") {
		t.Errorf("run without the key: exit code %d: %s", code, stderr)
	}
	if found, _ := diagnose(t, "--join", address); found["run"].Level != levelFail || !strings.Contains(found["run"].Remedy, "--run-key") {
		t.Errorf("doctor without the key finds %+v", found["run"])
	}
	if found, _ := diagnose(t, "--join", address, "--run-key", path); found["run"].Level != levelOK || found["admission"].Level != levelOK {
		t.Errorf("doctor with the key finds %+v", found)
	}
}

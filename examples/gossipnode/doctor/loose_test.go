package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestLooseRunKey shows that a run's key that others can read is complained of, by run
// and by doctor.
func TestLooseRunKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes that tell who may read")
	}
	path := filepath.Join(t.TempDir(), "run.key")
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, bytes.Repeat([]byte("k"), transport.MinRunKey), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if _, err := keys.ReadRun(path, cli.NewLog(zapcore.WarnLevel, &said)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "chmod 600"); got != want {
			t.Errorf("mode %v: warned %v, want %v: %s", mode, got, want, &said)
		}
		_, found := checkAdmission(settings.Settings{Network: settings.Network{RunKey: path}})
		if got := len(found) == 1 && found[0].Level == levelWarn; got != want {
			t.Errorf("mode %v: doctor finds %+v", mode, found)
		}
	}
}

// TestDoctorAsksForTheKey shows that doctor says what to do where a key is missing.
func TestDoctorAsksForTheKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.key")
	key := bytes.Repeat([]byte("k"), transport.MinRunKey)
	if err := os.WriteFile(path, key, keys.Mode); err != nil {
		t.Fatal(err)
	}
	address := clitest.Peer(t, peer.Admission{RunKey: key})
	if found, _ := diagnose(t, "--join", address); found["run"].Level != levelFail || !strings.Contains(found["run"].Remedy, "--run-key") {
		t.Errorf("doctor without the key finds %+v", found["run"])
	}
	if found, _ := diagnose(t, "--join", address, "--run-key", path); found["run"].Level != levelOK || found["admission"].Level != levelOK {
		t.Errorf("doctor with the key finds %+v", found)
	}
	at, id, _ := strings.Cut(address, "/p2p/")
	invitation := token.Of("murmuration", id, []string{at})
	invitation.Secret = key
	if found, _ := diagnose(t, "--join", invitation.String()); found["run"].Level != levelOK || found["admission"].Level != levelOK {
		t.Errorf("doctor with a token that holds the key finds %+v", found)
	}
}

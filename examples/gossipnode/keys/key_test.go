package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestIDMakesNoTransport shows that an id is computed from its key alone: a whole libp2p host, made and closed for it,
// now and then wrote a line of its own log among what keygen says.
func TestIDMakesNoTransport(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	if n := testing.AllocsPerRun(5, func() { _, _ = ID(key) }); n > 100 {
		t.Errorf("%v allocations for an id", n)
	}
}

// TestKeygen shows that a key is written for its owner only, is read again as
// the same identity, and is overwritten only by who says so.
func TestKeygen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	code, out, stderr := try("keygen", "--out", path)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != Mode && runtime.GOOS != "windows" {
		t.Errorf("mode %v, want %v", info.Mode().Perm(), Mode)
	}
	key, err := Read(path, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := ID(key); err != nil || string(id) != strings.TrimSpace(out) {
		t.Errorf("the key is of %q (%v), keygen has printed %q", id, err, out)
	}
	before, _ := os.ReadFile(path)
	if code, _, stderr = try("keygen", "--out", path); code != cli.ExitFailed || !strings.Contains(stderr, "--force") {
		t.Errorf("writing over a key: exit code %d: %s", code, stderr)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the key has been overwritten")
	}
	code, out, _ = try("keygen", "--out", path, "--force", "--json")
	var printed struct{ Peer, Key string }
	if err := json.Unmarshal([]byte(out), &printed); code != cli.ExitDone || err != nil || printed.Key != path {
		t.Errorf("with --force --json: exit code %d, %q (%v)", code, out, err)
	}
	if after, _ := os.ReadFile(path); bytes.Equal(before, after) {
		t.Error("with --force the key is the old one")
	}
	if left, _ := filepath.Glob(path + "?*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestLooseKey shows that a key which others can read is complained of.
func TestLooseKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes that tell who may read")
	}
	path := filepath.Join(t.TempDir(), "node.key")
	if _, err := Generate(path, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode
		want bool
	}{{0o600, false}, {0o400, false}, {0o640, true}, {0o604, true}} {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if _, err := Read(path, cli.NewLog(zapcore.WarnLevel, &said)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "chmod 600"); got != c.want {
			t.Errorf("mode %v: warned %v, want %v: %s", c.mode, got, c.want, &said)
		}
	}
}

// TestForeignKeys shows that keys of other kinds are refused.
func TestForeignKeys(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for want, block := range map[string]*pem.Block{
		"not an Ed25519 key": {Type: pemType, Bytes: der},
		"no PEM block":       {Type: "PUBLIC KEY", Bytes: der},
		"asn1":               {Type: pemType, Bytes: der[:10]},
	} {
		if _, err := decodeKey(pem.EncodeToMemory(block)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

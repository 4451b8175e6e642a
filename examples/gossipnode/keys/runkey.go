package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// runKeyBytes is how many random bytes keygen draws for the key of a run.
const runKeyBytes = 32

// runKeyHeader is the first line of a run's key, before its digits and their checksum.
const runKeyHeader = "murmuration run key 1: who has it may take part"

// Errors of a file that is to hold a run's key.
var (
	errPrivate = errors.New("it is a private key, a peer's or an operator's identity: give that with --key")
	errDamaged = errors.New("its checksum is wrong: copy the file again")
)

// ReadRun reads the key that a run shares: one that keygen made, or the text of any other
// file but for white space around it. It warns if others can read it too. An error is a fault of configuration.
func ReadRun(path string, log *zap.Logger) ([]byte, error) {
	text, err := read(path, "the run's key", "--run-key ", log)
	if err != nil {
		return nil, cli.Config(err)
	}
	key, err := decodeRunKey(bytes.TrimSpace(text))
	if err != nil {
		return nil, cli.Config(fmt.Errorf("reading the run's key %s: %w", path, err))
	}
	if len(key) < transport.MinRunKey || len(key) > transport.MaxRunKey {
		return nil, cli.Config(fmt.Errorf("reading the run's key: %s holds %d bytes, want %d to %d that nobody can guess: make one with gossipnode keygen --run-key",
			path, len(key), transport.MinRunKey, transport.MaxRunKey))
	}
	return key, nil
}

// decodeRunKey is the key in a text.
func decodeRunKey(text []byte) ([]byte, error) {
	if block, _ := pem.Decode(text); block != nil || bytes.HasPrefix(text, []byte("-----BEGIN")) {
		return nil, errPrivate
	}
	body, ours := bytes.CutPrefix(text, []byte(runKeyHeader))
	if !ours {
		return text, nil
	}
	digits, sum, _ := bytes.Cut(bytes.TrimSpace(body), []byte(" "))
	if fmt.Sprintf("%08x", crc32.ChecksumIEEE(digits)) != string(sum) {
		return nil, errDamaged
	}
	return digits, nil
}

// newRunKey is a key for a run, as text.
func newRunKey() []byte {
	random := make([]byte, runKeyBytes)
	rand.Read(random) // never fails
	digits := hex.AppendEncode(nil, random)
	return fmt.Appendf(nil, "%s\n%s %08x\n", runKeyHeader, digits, crc32.ChecksumIEEE(digits))
}

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

// runKeyBytes is the number of random bytes in a run's key.
const runKeyBytes = 32

// runKeyHeader is the first line of a run's key; the digits and their checksum follow.
const runKeyHeader = "murmuration run key 1: who has it may take part"

// Errors of a run key's file.
var (
	errPrivate = errors.New("it is a private key, a peer's or an operator's identity: give that with --key")
	errDamaged = errors.New("its checksum is wrong: copy the file again")
)

// ReadRun reads a run's key: one that keygen made, or the text of any other file without the white space around it.
// It warns if other users can read the file. An error is a configuration error.
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

// decodeRunKey returns the key in a text.
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

// newRunKey returns the text of a new key for a run.
func newRunKey() []byte {
	random := make([]byte, runKeyBytes)
	rand.Read(random) // never fails
	digits := hex.AppendEncode(nil, random)
	return fmt.Appendf(nil, "%s\n%s %08x\n", runKeyHeader, digits, crc32.ChecksumIEEE(digits))
}

package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// runKeyBytes is how many random bytes keygen draws for the key of a run.
const runKeyBytes = 32

// ReadRun reads the key that a run shares: all of the file but white space around
// it. It warns if others can read it too.
func ReadRun(path string, log *zap.Logger) ([]byte, error) {
	text, err := read(path, "the run's key", "--run-key ", log)
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(text)
	if len(key) < seam.MinRunKey || len(key) > seam.MaxRunKey {
		return nil, fmt.Errorf("reading the run's key: %s holds %d bytes, want %d to %d that nobody can guess: make one with gossipnode keygen --run-key",
			path, len(key), seam.MinRunKey, seam.MaxRunKey)
	}
	return key, nil
}

// newRunKey is a key for a run, as text.
func newRunKey() []byte {
	random := make([]byte, runKeyBytes)
	rand.Read(random) // never fails
	return append(hex.AppendEncode(nil, random), '\n')
}

package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// runKeyBytes is how many random bytes keygen draws for the key of a run.
const runKeyBytes = 32

// ReadRun reads the key that a run shares: all of the file but white space around
// it. It warns if others can read it too.
func ReadRun(path string, log *zap.Logger) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the run's key: %w: make one with gossipnode keygen --run-key --out %s, and copy it to every machine", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the run's key: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the run's key: %w", err)
	}
	if Loose(info) {
		log.Warn("others on this machine may use the run's key: chmod 600 it", zap.String("run_key", path), zap.Stringer("mode", info.Mode().Perm()))
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*seam.MaxRunKey))
	if err != nil {
		return nil, fmt.Errorf("reading the run's key: %w", err)
	}
	key := bytes.TrimSpace(text)
	if len(key) < seam.MinRunKey || len(key) > seam.MaxRunKey {
		return nil, fmt.Errorf("reading the run's key: %s holds %d bytes, want %d to %d that nobody can guess: make one with gossipnode keygen --run-key",
			path, len(key), seam.MinRunKey, seam.MaxRunKey)
	}
	return key, nil
}

// Loose tells whether others may read a file.
func Loose(info fs.FileInfo) bool {
	return info.Mode().Perm()&^Mode != 0 && runtime.GOOS != "windows"
}

// newRunKey is a key for a run, as text.
func newRunKey() []byte {
	random := make([]byte, runKeyBytes)
	rand.Read(random) // never fails
	return append(hex.AppendEncode(nil, random), '\n')
}

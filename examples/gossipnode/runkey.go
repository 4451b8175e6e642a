package main

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

	"github.com/seed-97356399/murmuration/peer"
)

// runKeyBytes is how many random bytes keygen draws for the key of a run.
const runKeyBytes = 32

// admission says who may take part.
func (s networkSettings) admission(log *zap.Logger) (peer.Admission, error) {
	a := peer.Admission{Allow: s.Allow}
	if s.RunKey == "" {
		return a, nil
	}
	key, err := readRunKey(s.RunKey, log)
	a.Key = key
	return a, err
}

// readRunKey reads the key that a run shares: all of the file but white space around
// it. It warns if others can read it too.
func readRunKey(path string, log *zap.Logger) ([]byte, error) {
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
	if loose(info) {
		log.Warn("others on this machine may use the run's key: chmod 600 it", zap.String("run_key", path), zap.Stringer("mode", info.Mode().Perm()))
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*peer.MaxRunKey))
	if err != nil {
		return nil, fmt.Errorf("reading the run's key: %w", err)
	}
	key := bytes.TrimSpace(text)
	if len(key) < peer.MinRunKey || len(key) > peer.MaxRunKey {
		return nil, fmt.Errorf("reading the run's key: %s holds %d bytes, want %d to %d that nobody can guess: make one with gossipnode keygen --run-key",
			path, len(key), peer.MinRunKey, peer.MaxRunKey)
	}
	return key, nil
}

// loose tells whether others may read a file.
func loose(info fs.FileInfo) bool {
	return info.Mode().Perm()&^keyMode != 0 && runtime.GOOS != "windows"
}

// newRunKey is a key for a run, as text.
func newRunKey() []byte {
	random := make([]byte, runKeyBytes)
	rand.Read(random) // never fails
	return append(hex.AppendEncode(nil, random), '\n')
}

func readable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// checkAdmission looks at the list and the run's key.
func (s settings) checkAdmission() (_ peer.Admission, found []diagnosis) {
	if s.Allow == "" && s.RunKey == "" {
		return peer.Admission{}, nil
	}
	const what = "admission"
	admission, err := s.admission(zap.NewNop())
	info, _ := os.Stat(s.RunKey)
	switch {
	case err != nil:
		return peer.Admission{}, []diagnosis{healthy(what, "%v", err).fail("give the file that keygen --run-key has made")}
	case s.Allow != "" && !readable(s.Allow):
		return peer.Admission{}, []diagnosis{healthy(what, "the list %s is not there, or not this user's to read", s.Allow).fail("make the file, with the id of a peer in each line")}
	case info != nil && loose(info):
		return admission, []diagnosis{healthy(what, "others on this machine may use the run's key %s", s.RunKey).warn("chmod 600 " + s.RunKey)}
	}
	return admission, []diagnosis{healthy(what, "the list and the run's key can be read")}
}

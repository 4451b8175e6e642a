// Package keys makes and reads the keys of peers, operators and runs, with the command
// keygen.
package keys

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	pemType = "PRIVATE KEY" // PKCS #8
	// Mode is the mode of files that others must not read.
	Mode fs.FileMode = 0o600
	// KnownSuffix is appended to a key's name for the file with the identities of host:port addresses.
	KnownSuffix = ".known"
)

// maxKey bounds a key's file, in bytes.
const maxKey = 4 << 10

// read reads the file of a key. flag is keygen's flag for that kind of key, or "". It warns if other users can read
// the file.
func read(path, what, flag string, log *zap.Logger) ([]byte, error) {
	text, err := files.Read(path, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w: make one with gossipnode keygen %s--out %s", what, err, flag, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	if info, err := os.Stat(path); err == nil && Loose(info) {
		log.Warn("others on this machine may use "+what+": chmod 600 it", zap.String("file", path), zap.Stringer("mode", info.Mode().Perm()))
	}
	return text, nil
}

// Loose tells whether other users may read a file.
func Loose(info fs.FileInfo) bool {
	return info.Mode().Perm()&^Mode != 0 && runtime.GOOS != "windows"
}

// Read reads a key that keygen wrote. It warns if other users can read the file. An error is a configuration error.
func Read(path string, log *zap.Logger) (ed25519.PrivateKey, error) {
	text, err := read(path, "the key", "", log)
	if err != nil {
		return nil, cli.Config(err)
	}
	key, err := decodeKey(text)
	if err != nil {
		return nil, cli.Config(fmt.Errorf("reading the key %s: %w: make one with gossipnode keygen", path, err))
	}
	return key, nil
}

func decodeKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if bytes.HasPrefix(text, []byte(runKeyHeader)) {
		return nil, errors.New("it is the key of a run: give that with --run-key")
	}
	if block == nil || block.Type != pemType {
		return nil, fmt.Errorf("no PEM block %q in it", pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it holds a %T, not an Ed25519 key", parsed)
	}
	return key, nil
}

// Encode is the text of a key.
func Encode(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// ID is the peer id of a key.
func ID(key ed25519.PrivateKey) (transport.PeerID, error) {
	return p2pnet.ID(key.Public().(ed25519.PublicKey))
}

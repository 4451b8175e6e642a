package p2pnet

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/seed-97356399/murmuration/internal/atomicfile"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxKnownFile bounds the file of known identities, in bytes.
const maxKnownFile = 1 << 20

// known maps the key of an address to the identities that may answer there. A
// DNS name with several records has several.
type known map[string][]transport.PeerID

// knownFile remembers identities learned from join addresses. The file is read
// again for each question, so that a person can correct it while a peer runs;
// joining is rare.
type knownFile struct {
	path string // empty means in memory only

	mu     sync.Mutex
	memory []byte // the file's contents if there is no file
}

func openKnown(path string) (*knownFile, error) {
	k := &knownFile{path: path}
	_, _, err := k.load()
	return k, err
}

func (k *knownFile) lookup(address string) ([]transport.PeerID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, remembered, err := k.load()
	return remembered[address], err
}

// remember adds identities of an address. All lines that the file has,
// comments included, stay.
func (k *knownFile) remember(address string, ids []transport.PeerID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	content, remembered, err := k.load()
	if err != nil {
		return err
	}
	extended := slices.Clone(content)
	if n := len(extended); n > 0 && extended[n-1] != '\n' {
		extended = append(extended, '\n')
	}
	for _, id := range ids {
		if !slices.Contains(remembered[address], id) {
			extended = fmt.Appendf(extended, "%s %s\n", address, id)
		}
	}
	if len(extended) > maxKnownFile {
		return k.fault(fmt.Errorf("it would exceed %d bytes; remove lines that are not needed", maxKnownFile))
	}
	if k.path == "" {
		k.memory = extended
		return nil
	}
	return k.fault(atomicfile.Write(k.path, extended))
}

// load returns the file's contents, and nothing if the file does not exist.
func (k *knownFile) load() ([]byte, known, error) {
	content, err := k.memory, error(nil)
	if k.path != "" {
		content, err = os.ReadFile(k.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err == nil && len(content) > maxKnownFile {
		err = fmt.Errorf("it has more than %d bytes", maxKnownFile)
	}
	var remembered known
	if err == nil {
		remembered, err = parseKnown(content)
	}
	return content, remembered, k.fault(err)
}

func (k *knownFile) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("known identities in %q: %w", k.path, err)
}

// parseKnown reads lines of an address and a peer id. Empty lines and lines that
// begin with # are skipped; anything else is an error that names the line.
func parseKnown(content []byte) (known, error) {
	remembered := make(known)
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not \"host:port PEERID\"", number)
		}
		a, err := parseAddress(fields[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		id := transport.PeerID(fields[1])
		if err := CheckPeer(id); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if !slices.Contains(remembered[a.key()], id) {
			remembered[a.key()] = append(remembered[a.key()], id)
		}
	}
	return remembered, nil
}

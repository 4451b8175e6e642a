package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// mainVariable makes the test binary act as gossipnode, for tests that need
// processes; children of such a process inherit it.
const mainVariable = "ACT_AS_GOSSIP_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) {
	var stdout bytes.Buffer
	var stderr sharedBuffer
	code = execute(args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// sharedBuffer is a buffer that several goroutines may write to, as they do to standard
// error.
type sharedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *sharedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(text)
}

// lastLine decodes the last line of standard output, as --json promises it.
func lastLine(t *testing.T, out string) result {
	t.Helper()
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	var r result
	decoder := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("last line of standard output: %v\n%s", err, out)
	}
	return r
}

// pictures writes a small data set in the files of MNIST: each class is a bright
// bar at a place of its own, in noise.
func pictures(t *testing.T, train, test int) (dir string) {
	t.Helper()
	const side, classes = 28, 10
	dir = t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	write := func(name string, items int, size int, fill func(i int, item []byte)) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		header := []byte{0, 0, 8, 1}
		header = binary.BigEndian.AppendUint32(header, uint32(items))
		if size > 1 {
			header[3] = 3
			header = binary.BigEndian.AppendUint32(header, side)
			header = binary.BigEndian.AppendUint32(header, side)
		}
		_, _ = z.Write(header)
		item := make([]byte, size)
		for i := range items {
			fill(i, item)
			_, _ = z.Write(item)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	label := func(i int, item []byte) { item[0] = byte(i % classes) }
	picture := func(i int, item []byte) {
		for j := range item {
			item[j] = byte(rng.IntN(40))
			if j/side/2 == i%classes {
				item[j] += 200
			}
		}
	}
	write("train-images-idx3-ubyte.gz", train, side*side, picture)
	write("train-labels-idx1-ubyte.gz", train, 1, label)
	write("t10k-images-idx3-ubyte.gz", test, side*side, picture)
	write("t10k-labels-idx1-ubyte.gz", test, 1, label)
	return dir
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const bound = 30 * time.Second
	for deadline := time.Now().Add(bound); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, bound)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }

// writeFile writes a file of a test's own.
func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// scanLines collects lines as they come; they may be asked for meanwhile.
func scanLines(t *testing.T, from interface{ Read([]byte) (int, error) }) <-chan string {
	t.Helper()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

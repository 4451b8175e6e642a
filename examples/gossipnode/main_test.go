package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// mainVariable makes the test binary act as gossipnode; all processes that tests start
// inherit it.
const mainVariable = clitest.Variable

// waiting is how many tests that call t.Parallel run at once, unless -parallel says
// otherwise: they wait for processes, sockets and timeouts more than they work. Tests that
// measure call it not, and so run alone.
const waiting = "4"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	if err := errors.Join(os.Setenv(mainVariable, "1"), flag.Set("test.parallel", waiting)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) { return program.Try(args...) }

type sharedBuffer = clitest.Buffer

// program is gossipnode.
var program clitest.Program = newRoot

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
	clitest.Eventually(t, what, holds)
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }

// writeFile writes a file of a test's own.
func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	return clitest.WriteFile(t, name, text)
}

// scanLines collects lines as they come; they may be asked for meanwhile.
func scanLines(t *testing.T, from interface{ Read([]byte) (int, error) }) <-chan string {
	t.Helper()
	return clitest.ScanLines(t, from)
}

package clitest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pictures writes a small data set in MNIST's format: each class is a bright bar at its own place, with noise.
func Pictures(t *testing.T, train, test int) (dir string) {
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

// LastLine decodes the last line of standard output, which --json writes.
func LastLine(t *testing.T, out string, into any) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	decoder := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("last line of standard output: %v\n%s", err, out)
	}
}

// MNIST returns flags that name that data set. It skips the test if the data set is absent.
func MNIST(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(checkout(t), "../shared/data/mnist"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no MNIST to learn from: %v", err)
	}
	return "--dataset mnist --data " + dir
}

// checkout is the folder of the module, above the test's folder.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal(err)
	return ""
}

// OneLine decodes the single line of standard output twice: into into, and into a map of all its fields.
func OneLine(t *testing.T, out []byte, into any) (fields map[string]json.RawMessage) {
	t.Helper()
	if n := bytes.Count(out, []byte("\n")); n != 1 {
		t.Errorf("%d lines on standard output", n)
	}
	LastLine(t, string(out), into)
	if err := json.Unmarshal(out, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

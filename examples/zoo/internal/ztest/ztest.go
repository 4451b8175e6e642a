// Package ztest has helpers for the tests of the zoo. Only tests import it.
package ztest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Golden compares text with a file in testdata, or rewrites the file.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%swant\n%s", path, got, want)
	}
}

// DataDir finds ../shared/data/NAME beside the project, or skips the test if it does not exist, as on a user's
// machine.
func DataDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs("../../../../shared/data/" + name) // from examples/zoo/PACKAGE
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set is not on this machine: %v", err)
	}
	return dir
}

// Sum32 is a short fingerprint of bytes.
func Sum32(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// BytesOf are the bits of a vector.
func BytesOf(v tensor.Vector) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, []float32(v)) // fixed-size numbers never fail
	return data
}

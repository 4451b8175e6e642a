package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// packed is a tar archive, gzipped, of files by their names; a name that ends in a
// slash is a folder, and one that begins with @ a link to its content.
func packed(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, file := range files {
		header := &tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1])), Typeflag: tar.TypeReg}
		if name, link := strings.CutPrefix(file[0], "@"); link {
			header = &tar.Header{Name: name, Linkname: file[1], Typeflag: tar.TypeSymlink}
		} else if strings.HasSuffix(file[0], "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(file[1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// packedSet is a set of two members, served as an archive.
func packedSet(t *testing.T, archive []byte) publicSet {
	t.Helper()
	return publicSet{
		name: "test", bases: []string{mirrorOf(t, serve(archive))}, folder: "in",
		files:   []publicFile{publicFileOf("all.tar.gz", archive)},
		members: []publicFile{publicFileOf("a.bin", []byte("first")), publicFileOf("b.bin", []byte("second"))},
	}
}

// TestFetchUnpacks shows that of an archive only what is wanted is written, and
// that the archive goes.
func TestFetchUnpacks(t *testing.T) {
	set := packedSet(t, packed(t,
		[2]string{"in/", ""}, [2]string{"../escape.bin", "x"}, [2]string{"/tmp/escape.bin", "x"}, [2]string{"a.bin", "not this"},
		[2]string{"in/readme.html", "not wanted"}, [2]string{"@in/b.bin", "/etc/passwd"}, [2]string{"in/a.bin", "first"}, [2]string{"in/b.bin", "second"}))
	f, _ := testFetcher(t, filepath.Join(t.TempDir(), "data"))
	for _, want := range []int64{set.files[0].Bytes, 0} {
		if n, err := f.fetch(t.Context(), set); err != nil || n != want {
			t.Fatalf("%d bytes, %v, want %d", n, err, want)
		}
		entries, err := os.ReadDir(f.dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("in the folder: %v, %v", entries, err)
		}
		mustHold(t, filepath.Join(f.dir, "a.bin"), []byte("first"))
		mustHold(t, filepath.Join(f.dir, "b.bin"), []byte("second"))
	}
	mustBeMissing(t, filepath.Join(f.dir, "..", "escape.bin"))
}

func TestFetchUnpackFails(t *testing.T) {
	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"missing":     {packed(t, [2]string{"in/a.bin", "first"}), "1 of 2 files are not in it"},
		"other size":  {packed(t, [2]string{"in/a.bin", "first"}, [2]string{"in/b.bin", "second and more"}), "b.bin has 15 bytes"},
		"other bytes": {packed(t, [2]string{"in/a.bin", "fist!"}, [2]string{"in/b.bin", "second"}), "SHA-256 of a.bin"},
		"no archive":  {[]byte("<html>no archive at all</html>"), "gzip"},
		"cut off":     {packed(t, [2]string{"in/a.bin", "first"}, [2]string{"in/b.bin", "second"})[:60], "EOF"},
	} {
		f, _ := testFetcher(t, t.TempDir())
		_, err := f.fetch(t.Context(), packedSet(t, c.archive))
		if err == nil || !strings.Contains(err.Error(), "unpacking") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		mustBeMissing(t, filepath.Join(f.dir, "b.bin"))
		mustBeMissing(t, filepath.Join(f.dir, ".a.bin.partial"))
	}
}

// TestFetchUnpacksAgain shows that an archive which came but was not unpacked is
// not fetched again.
func TestFetchUnpacksAgain(t *testing.T) {
	archive := packed(t, [2]string{"in/a.bin", "first"}, [2]string{"in/b.bin", "second"})
	set := packedSet(t, archive)
	f, _ := testFetcher(t, t.TempDir())
	for name, data := range map[string][]byte{"all.tar.gz": archive, "a.bin": []byte("first"), ".b.bin.partial": []byte("sec")} {
		if err := os.WriteFile(filepath.Join(f.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := f.fetch(t.Context(), set); err != nil || n != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	mustHold(t, filepath.Join(f.dir, "b.bin"), []byte("second"))
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := f.fetch(interrupted, set); !errors.Is(err, cli.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}

package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// idx is a plain IDX stream: the dimensions, then the data.
func idx(data []byte, dims ...uint32) []byte {
	out := []byte{0, 0, idxUint8, byte(len(dims))}
	for _, d := range dims {
		out = binary.BigEndian.AppendUint32(out, d)
	}
	return append(out, data...)
}

func zipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestDecodeIDX(t *testing.T) {
	pictures := idx([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)
	for _, stream := range [][]byte{pictures, zipped(t, pictures)} {
		got, err := decodePacked(bytes.NewReader(stream), 2, 2)
		if err != nil || !bytes.Equal(got, []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	got, err := decodePacked(bytes.NewReader(idx([]byte{9, 0, 3}, 3)))
	if err != nil || !bytes.Equal(got, []byte{9, 0, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDecodeIDXRefuses(t *testing.T) {
	fine := idx(make([]byte, 8), 2, 2, 2)
	packed := zipped(t, idx(make([]byte, 800), 200, 2, 2))
	damaged := bytes.Clone(packed)
	damaged[len(damaged)-5] ^= 1 // the checksum
	for name, c := range map[string]struct {
		stream []byte
		want   error
	}{
		"empty":                  {nil, ErrTruncated},
		"three bytes":            {fine[:3], ErrTruncated},
		"header cut":             {fine[:9], ErrTruncated},
		"data cut":               {fine[:len(fine)-1], ErrTruncated},
		"trailing byte":          {append(bytes.Clone(fine), 0), ErrTrailing},
		"web page":               {[]byte("<!DOCTYPE html><html>not found</html>"), ErrNotIDX},
		"short web page":         {[]byte("<html>"), ErrNotIDX},
		"labels":                 {idx(make([]byte, 30), 30), ErrNotIDX},
		"other type":             {append([]byte{0, 0, 9, 3}, fine[4:]...), ErrNotIDX},
		"other size of pictures": {idx(make([]byte, 12), 2, 2, 3), ErrNotIDX},
		"no pictures":            {idx(nil, 0, 2, 2), ErrNotIDX},
		"absurd count":           {idx(nil, 1<<31, 2, 2), ErrNotIDX},
		"absurd rows":            {idx(nil, 2, 1<<31, 2), ErrNotIDX},
		"gzip header cut":        {packed[:5], ErrTruncated},
		"gzip cut":               {packed[:len(packed)-12], ErrTruncated},
		"gzip checksum cut":      {packed[:len(packed)-2], ErrTruncated},
		"gzip damaged":           {damaged, ErrCorrupt},
		"gzip of something":      {zipped(t, []byte("this is a text of some length")), ErrNotIDX},
		"gzip, trailing":         {zipped(t, append(bytes.Clone(fine), 1)), ErrTrailing},
		"gzip, rubbish behind":   {append(bytes.Clone(packed), "rubbish, and more of it"...), ErrCorrupt},
	} {
		data, err := decodePacked(bytes.NewReader(c.stream), 2, 2)
		if !errors.Is(err, c.want) || data != nil {
			t.Errorf("%s: got %d bytes, %v; want %v", name, len(data), err, c.want)
		}
	}
}

// Memory depends on the bytes in the stream, even if the header claims the most pictures allowed.
func TestClaimedSizeIsNotAllocated(t *testing.T) {
	stream := idx(make([]byte, 100), MaxItems, Side, Side)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decodePacked(bytes.NewReader(stream), Side, Side)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTruncated) {
		t.Fatal(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes allocated for 100 bytes of data", used)
	}
}

// Decoded data has exactly the size that its header says, and encodes to the same stream.
func FuzzDecodeIDX(f *testing.F) {
	f.Add(idx([]byte{1, 2, 3, 4}, 2, 2, 1))
	f.Add(idx([]byte{1, 2, 3}, 2, 2, 1))
	f.Add(idx([]byte{1, 2}, 2))
	f.Add(zipped(f, idx([]byte{1, 2, 3, 4}, 2, 2, 1)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		data, err := decodePacked(bytes.NewReader(stream), 2, 1)
		if err != nil {
			if data != nil {
				t.Fatal("data and an error")
			}
			return
		}
		plain := stream
		if stream[0] == 0x1f {
			r, err := gzip.NewReader(bytes.NewReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if again := idx(data, uint32(len(data)/2), 2, 1); !bytes.Equal(again, plain) {
			t.Fatalf("% x decodes to % x", stream, data)
		}
	})
}

// writeFamily writes the four files of a tiny data set, changed by edit.
func writeFamily(t *testing.T, edit func(files map[string][]byte)) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{
		trainImages: zipped(t, idx(make([]byte, 3*Inputs), 3, Side, Side)),
		trainLabels: zipped(t, idx([]byte{0, 9, 1}, 3)),
		testImages:  zipped(t, idx(make([]byte, 2*Inputs), 2, Side, Side)),
		testLabels:  zipped(t, idx([]byte{4, 5}, 2)),
	}
	if edit != nil {
		edit(files)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoadFiles(t *testing.T) {
	plain := func(files map[string][]byte) {
		delete(files, trainLabels)
		files[strings.TrimSuffix(trainLabels, ".gz")] = idx([]byte{0, 9, 1}, 3)
	}
	unpackedByBrowser := func(files map[string][]byte) { files[trainLabels] = idx([]byte{0, 9, 1}, 3) }
	for name, edit := range map[string]func(map[string][]byte){"gzip": nil, "plain": plain, "plain named gz": unpackedByBrowser} {
		data, err := Load(t.Context(), Config{Name: "mnist", Dir: writeFamily(t, edit)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if data.Train.Len() != 3 || data.HeldOut.Len() != 2 || data.Total != 3 || data.Train.Label(1) != 9 {
			t.Errorf("%s: %d training pictures of %d, %d held out", name, data.Train.Len(), data.Total, data.HeldOut.Len())
		}
	}
}

// Each error names the file, and says what to do.
func TestLoadFilesRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(files map[string][]byte)
		file string
		want error
	}{
		"missing":      {func(f map[string][]byte) { delete(f, testLabels) }, testLabels, ErrMissing},
		"truncated":    {func(f map[string][]byte) { f[trainImages] = f[trainImages][:30] }, trainImages, ErrTruncated},
		"not IDX":      {func(f map[string][]byte) { f[testImages] = []byte("<html></html>") }, testImages, ErrNotIDX},
		"swapped":      {func(f map[string][]byte) { f[trainImages] = f[trainLabels] }, trainImages, ErrNotIDX},
		"label of 10":  {func(f map[string][]byte) { f[trainLabels] = idx([]byte{1, 10, 2}, 3) }, trainLabels, ErrNotIDX},
		"other counts": {func(f map[string][]byte) { f[trainLabels] = idx([]byte{1, 2}, 2) }, trainImages, ErrMismatch},
	} {
		dir := writeFamily(t, c.edit)
		_, err := Load(t.Context(), Config{Name: "fashion-mnist", Dir: dir})
		var wrong *DataError
		if !errors.As(err, &wrong) || !errors.Is(err, c.want) || wrong.Path != filepath.Join(dir, c.file) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, wrong.Path) || !strings.Contains(text, "etch") && !strings.Contains(text, "data set?") && !strings.Contains(text, "put ") {
			t.Errorf("%s: the error does not say what to do: %v", name, err)
		}
	}
}

func TestLoadFilesFromNowhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nothing")
	_, err := Load(t.Context(), Config{Name: "mnist", Dir: dir})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "https://") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(t.Context(), Config{Name: "mnist"}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "folder") {
		t.Errorf("no folder: got %v", err)
	}
}

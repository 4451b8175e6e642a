package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// readShard reads all samples of an archive: "KEY=LABEL:PICTURE" for good ones and
// "KEY!" for damaged ones.
func readShard(stream []byte, labels bool) (samples []string, err error) {
	reader, err := newShardReader("a.tar", bytes.NewReader(stream), labels)
	if err != nil {
		return nil, err
	}
	for {
		var rec record
		var damaged *RecordError
		switch err := reader.next(&rec); {
		case err == nil:
			samples = append(samples, fmt.Sprintf("%s=%d:%s", rec.key, rec.label, rec.packed))
		case errors.As(err, &damaged):
			samples = append(samples, damaged.Key+"!")
		case err == io.EOF:
			return samples, nil
		default:
			return samples, err
		}
	}
}

func text(name, data string) member { return member{name, []byte(data)} }

func TestShardSamples(t *testing.T) {
	long := strings.Repeat("9", maxLabelBytes+1)
	for name, c := range map[string]struct {
		members []member
		want    []string
	}{
		"in order":              {[]member{text("a.jpg", "A"), text("a.cls", "1"), text("b.png", "B"), text("b.cls", "255")}, []string{"a=1:A", "b=255:B"}},
		"label first":           {[]member{text("a.cls", "1"), text("a.jpeg", "A")}, []string{"a=1:A"}},
		"to the first dot":      {[]member{text("x/a.jpg", "A"), text("x/a.cls", "1"), text("x/a.b.cls", "2"), text("y/a.cls", "3"), text("y/a.JPG", "B")}, []string{"x/a=1:A", "y/a=3:B"}},
		"dots in the folder":    {[]member{text("v1.0/a.jpg", "A"), text("v1.0/a.cls", "1")}, []string{"v1.0/a=1:A"}},
		"white space":           {[]member{text("a.jpg", "A"), text("a.cls", " 7\n")}, []string{"a=7:A"}},
		"other members":         {[]member{text("README", "!"), text("a.json", "{}"), text("a.jpg", "A"), text("a.txt", "!"), text("a.cls", "1"), text("._a.jpg", "?")}, []string{"a=1:A"}},
		"no label":              {[]member{text("a.jpg", "A"), text("b.jpg", "B"), text("b.cls", "1")}, []string{"a!", "b=1:B"}},
		"no picture":            {[]member{text("a.jpg", "A"), text("a.cls", "1"), text("b.cls", "1")}, []string{"a=1:A", "b!"}},
		"two pictures":          {[]member{text("a.jpg", "A"), text("a.png", "B"), text("a.cls", "1"), text("b.jpg", "B"), text("b.cls", "1")}, []string{"a!", "b=1:B"}},
		"two labels":            {[]member{text("a.jpg", "A"), text("a.cls", "1"), text("a.cls", "2"), text("b.jpg", "B"), text("b.cls", "1")}, []string{"a!", "b=1:B"}},
		"empty picture":         {[]member{text("a.jpg", ""), text("a.cls", "1")}, []string{"a!"}},
		"large picture":         {[]member{{"a.jpg", make([]byte, MaxRecordBytes+1)}, text("a.cls", "1"), text("b.jpg", "B"), text("b.cls", "1")}, []string{"a!", "b=1:B"}},
		"empty label":           {[]member{text("a.jpg", "A"), text("a.cls", "")}, []string{"a!"}},
		"label 256":             {[]member{text("a.jpg", "A"), text("a.cls", "256")}, []string{"a!"}},
		"label -1":              {[]member{text("a.jpg", "A"), text("a.cls", "-1")}, []string{"a!"}},
		"label of a name":       {[]member{text("a.jpg", "A"), text("a.cls", "cat")}, []string{"a!"}},
		"long label":            {[]member{text("a.jpg", "A"), text("a.cls", long)}, []string{"a!"}},
		"a key that comes back": {[]member{text("a.jpg", "A"), text("b.jpg", "B"), text("b.cls", "1"), text("a.cls", "2")}, []string{"a!", "b=1:B", "a!"}},
		"nothing":               {nil, nil},
	} {
		plain := archive(t, c.members...)
		for _, stream := range [][]byte{plain, zipped(t, plain)} {
			if got, err := readShard(stream, false); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
			}
			// Labels alone are the same, without the pictures.
			var bare []string
			for _, sample := range c.want {
				label, _, _ := strings.Cut(sample, ":")
				if !strings.HasSuffix(label, "!") {
					label += ":"
				}
				bare = append(bare, label)
			}
			if got, err := readShard(stream, true); err != nil || !slices.Equal(got, bare) {
				t.Errorf("%s: labels %q, %v, want %q", name, got, err, bare)
			}
		}
	}
}

func TestShardDamage(t *testing.T) {
	plain := archive(t, text("a.jpg", strings.Repeat("A", 700)), text("a.cls", "1"), text("b.jpg", strings.Repeat("B", 700)), text("b.cls", "2"))
	packed := zipped(t, plain)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-6] ^= 1 // the checksum
	header := bytes.Clone(plain)
	header[3*tarBlock] ^= 1 // the name of a.cls
	for name, c := range map[string]struct {
		stream []byte
		want   error
	}{
		"empty":                       {nil, ErrTruncated},
		"web page":                    {[]byte("<!DOCTYPE html>" + strings.Repeat("not found ", 100)), ErrCorrupt},
		"in a header":                 {plain[:100], ErrTruncated},
		"in a picture":                {plain[:tarBlock+100], ErrTruncated},
		"between two members":         {plain[:3*tarBlock], ErrTruncated},
		"between two samples":         {plain[:5*tarBlock], ErrTruncated},
		"before the end":              {plain[:len(plain)-2*tarBlock], ErrTruncated},
		"in the end":                  {plain[:len(plain)-tarBlock], ErrTruncated},
		"header damaged":              {header, ErrCorrupt},
		"gzip, in its header":         {packed[:5], ErrTruncated},
		"gzip, cut":                   {packed[:len(packed)-12], ErrTruncated},
		"gzip, checksum cut":          {packed[:len(packed)-2], ErrTruncated},
		"gzip, damaged":               {flipped, ErrCorrupt},
		"gzip, rubbish behind":        {append(bytes.Clone(packed), "rubbish, and more of it"...), ErrCorrupt},
		"gzip of a truncated archive": {zipped(t, plain[:5*tarBlock]), ErrTruncated},
		"much behind":                 {append(bytes.Clone(plain), make([]byte, maxPadding+1)...), ErrTrailing},
	} {
		for _, labels := range []bool{false, true} {
			if _, err := readShard(c.stream, labels); !errors.Is(err, c.want) {
				t.Errorf("%s, labels only %v: %v, want %v", name, labels, err, c.want)
			}
		}
	}
}

// The pass over the labels does not read the pictures of a plain archive.
func TestLabelsSkipPictures(t *testing.T) {
	const picture = 1 << 20
	stream := archive(t, member{"a.jpg", make([]byte, picture)}, text("a.cls", "1"), member{"b.jpg", make([]byte, picture)}, text("b.cls", "2"))
	counted := &countingReader{Reader: bytes.NewReader(stream)}
	reader, err := newShardReader("a.tar", counted, true)
	if err != nil {
		t.Fatal(err)
	}
	var rec record
	for range 2 {
		if err := reader.next(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if counted.read > picture/4 {
		t.Errorf("%d bytes read of %d", counted.read, len(stream))
	}
}

type countingReader struct {
	*bytes.Reader
	read int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += n
	return n, err
}

// However an archive is damaged, what is read of it is bounded, labels alone are
// those that come with the pictures, and nothing comes after an end.
func FuzzShard(f *testing.F) {
	plain := archive(f, text("a.jpg", "A"), text("a.cls", "1"), text("b.cls", "2"), text("b.png", "B"), text("c.json", "{}"))
	f.Add(plain)
	f.Add(zipped(f, plain))
	f.Add(plain[:3*tarBlock])
	f.Add([]byte("<html></html>"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, wholeErr := readShard(stream, false)
		bare, bareErr := readShard(stream, true)
		if (wholeErr == nil) != (bareErr == nil) || wholeErr == nil && len(whole) != len(bare) {
			t.Fatalf("%q, %v; labels only: %q, %v", whole, wholeErr, bare, bareErr)
		}
		for i := range min(len(whole), len(bare)) {
			key, _, _ := strings.Cut(whole[i], ":")
			if !strings.HasPrefix(bare[i], key) {
				t.Fatalf("%q and %q", whole[i], bare[i])
			}
		}
	})
}

// A label that is accepted is the number that its decimal digits say. Other texts are an ErrLabel.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"0", "255", "256", " 7\n", "-1", "+1", "07", "cat", "", "1e1", "0x1", "1_0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		label, err := parseLabel(data)
		digits := strings.TrimLeft(strings.TrimSpace(string(data)), "0")
		if digits == "" {
			digits = "0"
		}
		if err == nil && fmt.Sprint(label) != digits {
			t.Fatalf("%q is %d", data, label)
		}
		if err != nil && !errors.Is(err, ErrLabel) {
			t.Fatal(err)
		}
	})
}

func TestShardFromDisk(t *testing.T) {
	dir := write(t, map[string][]byte{"train-0.tar": archive(t, text("a.jpg", "A"), text("a.cls", "3"))})
	s := shards{[]string{dir + "/train-0.tar"}}
	for _, labels := range []bool{false, true} {
		reader, err := s.open(0, labels)
		if err != nil {
			t.Fatal(err)
		}
		var rec record
		if err := reader.next(&rec); err != nil || rec.label != 3 || (rec.packed == nil) != labels {
			t.Errorf("labels only %v: %+v, %v", labels, rec, err)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (shards{[]string{dir + "/none.tar"}}).open(0, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

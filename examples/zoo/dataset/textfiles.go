package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// The sets of text: the user's own files, and the sources of Go.
const (
	Text     = "text"
	GoSource = "gosource"
)

// heldOutFiles decides what is held out: the first of every heldOutFiles files, in the order
// of their paths. If there are fewer files, it is the last 1/heldOutFiles of the bytes of each.
const heldOutFiles = 20

// heldOutWindows is the most windows that a model is tested on. They are spread evenly
// over the held-out text.
const heldOutWindows = 640

// isText tells whether a file is text, by its extension.
func isText(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".text", ".md", ".rst", ".tex", ".log", ".html", ".htm", ".xml", ".css", ".csv", ".json", ".jsonl", ".yaml", ".yml", ".toml",
		".go", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".py", ".js", ".ts", ".java", ".kt", ".rb", ".sh", ".sql", ".s":
		return true
	}
	return false
}

// textFile is a file of a text, or a part of one. Its bytes are on disk: a peer keeps those of its own part only.
type textFile struct {
	path    string // with slashes, below the folder
	at      string
	from, n int
}

// listTexts finds the text files of a folder, in the order of their paths. It leaves out
// hidden folders, files that are not text, and the folders testdata of Go's sources.
func (c Config) listTexts() ([]textFile, error) {
	dir, wanted := c.Dir, isText
	if c.Name == GoSource {
		var err error
		if dir, err = goSources(c.Dir); err != nil {
			return nil, err
		}
		wanted = func(name string) bool { return strings.HasSuffix(name, ".go") }
	}
	var files []textFile
	var content bytes.Buffer
	total := 0
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		switch name := entry; {
		case err != nil:
			return err
		case name.IsDir() && at != dir && (strings.HasPrefix(name.Name(), ".") || c.Name == GoSource && name.Name() == "testdata"):
			return fs.SkipDir
		case !name.Type().IsRegular() || !wanted(name.Name()):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Size() > int64(maxText-total) {
			return fmt.Errorf("more than %d bytes of text: give a part of the folder", maxText)
		}
		content.Reset()
		if err := (textFile{at: at, n: int(info.Size())}).append(&content); err != nil {
			return err
		}
		n := content.Len()
		total += n
		if below, err := filepath.Rel(dir, at); err == nil && n > 0 && bytes.IndexByte(content.Bytes(), 0) < 0 {
			files = append(files, textFile{filepath.ToSlash(below), at, 0, n})
		}
		return nil
	})
	if err != nil {
		return nil, &DataError{Path: dir, Err: err}
	}
	slices.SortFunc(files, func(a, b textFile) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// goSources is the folder of Go's sources: the given one, or that of Go on this machine.
func goSources(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	root := os.Getenv("GOROOT")
	if root == "" {
		name := "go"
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		out, err := exec.Command(name, "env", "GOROOT").Output()
		if root = strings.TrimSpace(string(out)); err != nil || root == "" {
			return "", &DataError{Path: GoSource, Err: errors.New("no Go found on this machine: give the folder of its sources, GOROOT/src")}
		}
	}
	return filepath.Join(root, "src"), nil
}

// append reads what there is of the file.
func (f textFile) append(to *bytes.Buffer) error {
	file, err := os.Open(f.at)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = to.ReadFrom(io.NewSectionReader(file, int64(f.from), int64(f.n)))
	return err
}

// loadTexts reads some parts of a text that is cut into Config.Parts parts; with 0 there is one, with all.
func (c Config) loadTexts(wanted ...int) ([]*Data, error) {
	files, err := c.listTexts()
	if err != nil {
		return nil, err
	}
	if c.Shard.Alpha != 0 {
		return nil, fmt.Errorf("%w: %v: a text has no labels: use iid or files", ErrShard, c.Shard)
	}
	train, heldOut := holdOut(files)
	window := c.Window
	if window == 0 {
		window = DefaultWindow
	}
	held, err := joined(heldOut, 0, lengthOf(heldOut))
	if err != nil {
		return nil, &DataError{Path: c.Dir, Err: err}
	}
	tests, err := NewText(held, window)
	if err != nil {
		return nil, &DataError{Path: c.Dir, Err: fmt.Errorf("what is held out of %d files: %w", len(files), err)}
	}
	if !c.Shard.Files {
		order := seeded.Rand(c.Seed, seeded.Shard, uint64(len(train)))
		order.Shuffle(len(train), func(i, j int) { train[i], train[j] = train[j], train[i] })
	}
	all, ends := lengthOf(train), endsOf(train)
	parts := max(c.Parts, 1)
	tests = tests.Spread(heldOutWindows)
	data := make([]*Data, len(wanted))
	for i, part := range wanted {
		text, err := joined(train, cutAt(ends, all, part, parts, c.Shard.Files), cutAt(ends, all, part+1, parts, c.Shard.Files))
		if err != nil {
			return nil, &DataError{Path: c.Dir, Err: err}
		}
		set, err := NewText(text, window)
		if err != nil {
			return nil, fmt.Errorf("%w: part %d of %d: %w", ErrShard, part, parts, err)
		}
		data[i] = &Data{Train: set, HeldOut: tests, Total: (all - 1) / window}
	}
	return data, nil
}

// holdOut divides files, or the bytes of each, into training and held-out text.
func holdOut(files []textFile) (train, heldOut []textFile) {
	for i, f := range files {
		switch last := f.n - f.n/heldOutFiles; {
		case len(files) < heldOutFiles:
			train, heldOut = append(train, textFile{f.path, f.at, 0, last}), append(heldOut, textFile{f.path, f.at, last, f.n - last})
		case i%heldOutFiles == 0:
			heldOut = append(heldOut, f)
		default:
			train = append(train, f)
		}
	}
	return train, heldOut
}

// joined reads some of the bytes that the files have, one after the other.
func joined(files []textFile, from, to int) ([]byte, error) {
	all := bytes.NewBuffer(make([]byte, 0, to-from+bytes.MinRead))
	at := 0
	for _, f := range files {
		skip, end := max(from-at, 0), min(to-at, f.n)
		if at += f.n; skip >= end {
			continue
		}
		before := all.Len()
		if err := (textFile{at: f.at, from: f.from + skip, n: end - skip}).append(all); err != nil {
			return nil, err
		}
		if all.Len()-before != end-skip {
			return nil, fmt.Errorf("%s has become shorter while it was read: start again once nothing writes to the folder", f.at)
		}
	}
	return all.Bytes(), nil
}

func lengthOf(files []textFile) (n int) {
	for _, f := range files {
		n += f.n
	}
	return n
}

// endsOf are the offsets, in the joined text, at which the files end.
func endsOf(files []textFile) []int {
	ends, n := make([]int, len(files)), 0
	for i, f := range files {
		n += f.n
		ends[i] = n
	}
	return ends
}

// cutAt is the offset at which a part begins. All parts have the same number of bytes; with
// whole, each cut moves up to the next end of a file.
func cutAt(ends []int, total, part, parts int, whole bool) int {
	at := int(int64(total) * int64(part) / int64(parts))
	if whole && at > 0 && at < total {
		i, _ := slices.BinarySearch(ends, at)
		at = ends[i]
	}
	return at
}

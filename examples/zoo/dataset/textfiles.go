package dataset

import (
	"bytes"
	"errors"
	"fmt"
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

// textFile is a file of a text.
type textFile struct {
	path  string // with slashes, below the folder
	bytes []byte
}

// readTexts reads the text files of a folder, in the order of their paths. It leaves out
// hidden folders, files that are not text, and the folders testdata of Go's sources.
func (c Config) readTexts() ([]textFile, error) {
	dir, wanted := c.Dir, isText
	if c.Name == GoSource {
		var err error
		if dir, err = goSources(c.Dir); err != nil {
			return nil, err
		}
		wanted = func(name string) bool { return strings.HasSuffix(name, ".go") }
	}
	var files []textFile
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
		b, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if total += len(b); total > maxText {
			return fmt.Errorf("more than %d bytes of text: give a part of the folder", maxText)
		}
		if below, err := filepath.Rel(dir, at); err == nil && len(b) > 0 && bytes.IndexByte(b, 0) < 0 {
			files = append(files, textFile{filepath.ToSlash(below), b})
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

// loadTexts reads a text and cuts it into Config.Parts parts; with 0 there is one, with all.
func (c Config) loadTexts() ([]*Data, error) {
	files, err := c.readTexts()
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
	tests, err := NewText(joined(heldOut), window)
	if err != nil {
		return nil, &DataError{Path: c.Dir, Err: fmt.Errorf("what is held out of %d files: %w", len(files), err)}
	}
	if !c.Shard.Files {
		order := seeded.Rand(c.Seed, seeded.Shard, uint64(len(train)))
		order.Shuffle(len(train), func(i, j int) { train[i], train[j] = train[j], train[i] })
	}
	all, ends := joined(train), endsOf(train)
	parts := max(c.Parts, 1)
	tests = tests.Spread(heldOutWindows)
	data := make([]*Data, parts)
	for i := range data {
		from, to := cutAt(ends, len(all), i, parts, c.Shard.Files), cutAt(ends, len(all), i+1, parts, c.Shard.Files)
		set, err := NewText(all[from:to:to], window)
		if err != nil {
			return nil, fmt.Errorf("%w: part %d of %d: %w", ErrShard, i, parts, err)
		}
		data[i] = &Data{Train: set, HeldOut: tests, Total: (len(all) - 1) / window}
	}
	return data, nil
}

// holdOut divides files, or the bytes of each, into training and held-out text.
func holdOut(files []textFile) (train, heldOut []textFile) {
	for i, f := range files {
		switch last := len(f.bytes) - len(f.bytes)/heldOutFiles; {
		case len(files) < heldOutFiles:
			train, heldOut = append(train, textFile{f.path, f.bytes[:last]}), append(heldOut, textFile{f.path, f.bytes[last:]})
		case i%heldOutFiles == 0:
			heldOut = append(heldOut, f)
		default:
			train = append(train, f)
		}
	}
	return train, heldOut
}

func joined(files []textFile) []byte {
	n := 0
	for _, f := range files {
		n += len(f.bytes)
	}
	all := make([]byte, 0, n)
	for _, f := range files {
		all = append(all, f.bytes...)
	}
	return all
}

// endsOf are the offsets, in the joined text, at which the files end.
func endsOf(files []textFile) []int {
	ends, n := make([]int, len(files)), 0
	for i, f := range files {
		n += len(f.bytes)
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

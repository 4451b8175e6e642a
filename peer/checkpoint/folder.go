package checkpoint

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/seed-97356399/murmuration/internal/atomicfile"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// ErrUnusable: there are checkpoints, and not one of them is sound and of this run: they have to
// be moved away, or another folder given.
var ErrUnusable = errors.New("no checkpoint can be used")

// Folder is one that keeps the states of one peer, and what they must be of.
type Folder struct {
	// Dir is where it is; it need not be there before Make or Probe.
	Dir string
	// Run, Dataset and Model are the names that its checkpoints carry: one with others is
	// refused. The last two may be empty.
	Run, Dataset, Model string
	// Keep is how many are kept.
	Keep int
	// Build is what this program was built from, for people: checkpoints carry it, and a
	// refusal names it beside that of the file.
	Build string
	// Older may know files of earlier builds whose models lie otherwise: value i of the model
	// is value order[i] of the file's; nil if it does not know the file.
	Older func(file, model *tensor.Layout) (order []int)
	// refused are the paths of those that could not be used: they neither count nor are
	// removed.
	refused []string
}

// refusedPaths are those of the files that Load has refused.
func refusedPaths(refused []error) (paths []string) {
	for _, err := range refused {
		if r := (*fs.PathError)(nil); errors.As(err, &r) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// Taken is a checkpoint that was taken up.
type Taken struct {
	// Params, Optimizer and Checkpoint are what Trainer.Save has copied, and Progress tells of the last.
	Params     tensor.Vector
	Optimizer  optim.State
	Checkpoint peer.Checkpoint
	Progress   Progress
	// Path is the file's.
	Path string
	// Older: its layers have other names than the model's, and were told apart by shape and
	// order, or by Folder.Older.
	Older    bool
	metadata map[string]string
}

// Peer is whose it was, as the file says: any text.
func (f *Taken) Peer() string { return f.metadata[keyPeer] }

// Course is that of the learning rate when it was saved, as JSON.
func (f *Taken) Course() string { return f.metadata[keySchedule] }

// Load takes up the newest checkpoint that is sound and of this run, and puts its
// values into params. Those that are not are left as they are, and named in refused; if
// there are only such, that is an error. Without any, there is nothing to take up.
func (c Folder) Load(params *tensor.Params) (taken *Taken, refused []error, err error) {
	names, err := c.Names()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the checkpoints: %w", err)
	}
	slices.Reverse(names)
	for _, name := range names {
		path := filepath.Join(c.Dir, name)
		taken, err := Read(c, path, params)
		if err == nil {
			return taken, refused, nil
		}
		refused = append(refused, &fs.PathError{Op: "not using the checkpoint", Path: path, Err: err})
	}
	if len(refused) > 0 {
		return nil, refused, fmt.Errorf("%w in %s: %w", ErrUnusable, c.Dir, errors.Join(refused...))
	}
	return nil, nil, nil
}

// Names are those of the checkpoints in the folder, the oldest first.
func (c Folder) Names() ([]string, error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := sequenceOf(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		first, _ := sequenceOf(a)
		second, _ := sequenceOf(b)
		return cmp.Compare(first, second)
	})
	return names, nil
}

// nameForm has so many digits that no process uses up the numbers.
var nameForm = regexp.MustCompile(`^checkpoint-([0-9]{1,12})\.safetensors$`)

// sequenceOf is the number in a checkpoint's name.
func sequenceOf(name string) (sequence int64, ok bool) {
	parts := nameForm.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	sequence, err := strconv.ParseInt(parts[1], 10, 64)
	return sequence, err == nil && sequence > 0
}

// nameOf is the name of a checkpoint; they are numbered in the order in which they were saved.
func nameOf(sequence int64) string {
	return fmt.Sprintf("checkpoint-%06d.safetensors", sequence)
}

// Probe makes the folder and writes to it, so that one that cannot be written to is
// noticed before hours of training.
func (c Folder) Probe() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("making the checkpoint folder: %w", err)
	}
	probe, err := os.CreateTemp(c.Dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("writing to the checkpoint folder: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// save adds a checkpoint in one step, and then removes those of this run that are too
// many: whatever happens, the folder holds the ones before it, or it too, whole and on
// disk.
func (c Folder) save(params *tensor.Params, metadata map[string]string) (path string, err error) {
	names, err := c.Names()
	if err != nil {
		return "", fmt.Errorf("writing a checkpoint: %w", err)
	}
	var last int64
	if len(names) > 0 {
		last, _ = sequenceOf(names[len(names)-1])
	}
	name := nameOf(last + 1)
	path = filepath.Join(c.Dir, name)
	if err := writeFile(path, params, metadata); err != nil {
		return "", fmt.Errorf("writing a checkpoint: %w", err)
	}
	return path, c.rotate(append(names, name))
}

// rotate removes all but the newest of this run. What is of another, or cannot be read or
// used, is not this program's to remove.
func (c Folder) rotate(names []string) error {
	var faults []error
	kept := 0
	for _, name := range slices.Backward(names) {
		path := filepath.Join(c.Dir, name)
		metadata, err := readMetadata(path)
		if err != nil || c.belongs(metadata) != nil || slices.Contains(c.refused, path) {
			continue
		}
		if kept++; kept > c.Keep {
			faults = append(faults, atomicfile.Remove(path))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("removing old checkpoints: %w", err)
	}
	return nil
}

// belongs tells what keeps a file from being a checkpoint of this run.
func (c Folder) belongs(metadata map[string]string) error {
	if err := checkFormat(metadata[keyFormat]); err != nil {
		return err
	}
	for key, want := range map[string]string{keyRun: c.Run, keyDataset: c.Dataset, keyModel: c.Model} {
		if metadata[key] != want {
			return fmt.Errorf("it is of another %s, %.64q and not %q", key, metadata[key], want)
		}
	}
	return nil
}

// describe is what a checkpoint's metadata tell of what it is of.
func (c Folder) describe(layout *tensor.Layout, now time.Time) map[string]string {
	hash := layout.Hash()
	return map[string]string{
		keyFormat: checkpointFormat, keyRun: c.Run, keyDataset: c.Dataset, keyModel: c.Model,
		keyLayout: hex.EncodeToString(hash[:]), keySaved: now.Format(time.RFC3339), keyBuild: c.Build,
	}
}

// writeFile puts a checkpoint in its place when it is whole and on disk.
func writeFile(path string, params *tensor.Params, metadata map[string]string) error {
	return atomicfile.Replace(path, 0o644, func(w io.Writer) error { return params.WriteSafetensors(w, metadata) })
}

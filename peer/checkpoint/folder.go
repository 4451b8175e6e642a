package checkpoint

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

// ErrUnusable: the folder has checkpoints, but none is valid and of this run: move them away, or use another folder.
var ErrUnusable = errors.New("no checkpoint can be used")

// Folder is a folder with the states of one peer.
type Folder struct {
	// Dir is its path; it need not exist before Make or Probe.
	Dir string
	// Run, Dataset and Model are the names in its checkpoints: one with other names is refused. The last two may be
	// empty.
	Run, Dataset, Model string
	// About are further entries of the metadata of its checkpoints, under keys of the program's own.
	About map[string]string
	// Keep is how many checkpoints are kept, one at least.
	Keep int
	// Build is the build of this program, for people: checkpoints have it, and a refusal names it beside that of the
	// file.
	Build string
	// Older may know files of earlier builds whose values have another order: value i of the model is value order[i]
	// of the file; nil if it does not know the file.
	Older func(file, model *tensor.Layout) (order []int)
	// refused are the paths of files that could not be used: they do not count, and are never removed.
	refused []string
}

// refusedPaths returns the paths of the files that Load has refused.
func refusedPaths(refused []error) (paths []string) {
	for _, err := range refused {
		if r := (*fs.PathError)(nil); errors.As(err, &r) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// Taken is a checkpoint that was loaded.
type Taken struct {
	// Params, Optimizer and Checkpoint are the copies of Trainer.Save; Progress describes the last one.
	Params     tensor.Vector
	Optimizer  optim.State
	Checkpoint peer.Checkpoint
	Progress   Progress
	// Path is the path of the file.
	Path string
	// Older: the file's layers have other names than the model's. They were matched by shape and order, or by
	// Folder.Older.
	Older    bool
	metadata map[string]string
}

// Peer is the id of its peer in the file: any text.
func (f *Taken) Peer() string { return f.metadata[keyPeer] }

// About is an entry of the program's own in its metadata, empty if it has none.
func (f *Taken) About(key string) string { return f.metadata[key] }

// Course is the schedule of the learning rate at the time of saving, as JSON.
func (f *Taken) Course() string { return f.metadata[keySchedule] }

// Load finds the newest checkpoint that is valid and of this run, and copies its values to params. Other files stay
// as they are, and are named in refused; if there are only such files, that is an error. Without any file, taken is
// nil.
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

// Names are the names of the folder's checkpoints, the oldest first.
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

// nameForm allows so many digits that no process uses up the numbers.
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

// nameOf is the name of a checkpoint. Checkpoints are numbered in the order of saving.
func nameOf(sequence int64) string {
	return fmt.Sprintf("checkpoint-%06d.safetensors", sequence)
}

// Probe makes the folder and writes to it, so that a folder without write access is noticed before hours of training.
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

// save adds a checkpoint in one step, and then removes surplus ones of this run: whatever happens, the folder has the
// earlier ones, perhaps with the new one, complete and on disk.
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

// rotate removes all but the newest checkpoints of this run. It never removes files that are of another run or cannot
// be used.
func (c Folder) rotate(names []string) error {
	var faults []error
	kept := 0
	for _, name := range slices.Backward(names) {
		path := filepath.Join(c.Dir, name)
		metadata, err := readMetadata(path)
		if err != nil || c.belongs(metadata) != nil || slices.Contains(c.refused, path) {
			continue
		}
		if kept++; kept > max(c.Keep, 1) {
			faults = append(faults, atomicfile.Remove(path))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("removing old checkpoints: %w", err)
	}
	return nil
}

// belongs returns an error if a file is no checkpoint of this run.
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

// describe makes the metadata that say which run, model and data a checkpoint is of.
func (c Folder) describe(layout *tensor.Layout, now time.Time) map[string]string {
	hash := layout.Hash()
	about := map[string]string{}
	maps.Copy(about, c.About)
	maps.Copy(about, map[string]string{
		keyFormat: checkpointFormat, keyRun: c.Run, keyDataset: c.Dataset, keyModel: c.Model,
		keyLayout: hex.EncodeToString(hash[:]), keySaved: now.Format(time.RFC3339), keyBuild: c.Build,
	})
	return about
}

// writeFile writes a checkpoint, and gives it its name when it is complete and on disk.
func writeFile(path string, params *tensor.Params, metadata map[string]string) error {
	return atomicfile.Replace(path, 0o644, func(w io.Writer) error { return params.WriteSafetensors(w, metadata) })
}

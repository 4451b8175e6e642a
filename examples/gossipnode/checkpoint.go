package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	checkpointFile = "model.safetensors"
	// partialFile is a checkpoint that is being written. One that is found was
	// left by a crash, and is overwritten.
	partialFile      = ".model.safetensors.partial"
	checkpointFormat = "murmuration-checkpoint-1"
)

// Keys of a checkpoint's metadata.
const (
	keyFormat  = "format"
	keySteps   = "steps"
	keyRun     = "run"
	keyDataset = "dataset"
	keyModel   = "model"
	keyLayout  = "layout"
	// What lay behind the model, and behind the flock's: without them a peer that
	// comes back to its flock copies the flock's model.
	keyAge   = "age"
	keyFlock = "flock_steps"
)

// checkpoint is a folder that keeps a model, and what the model must be of.
type checkpoint struct {
	dir                 string
	run, dataset, model string
	// behind is what lies behind the model: what load has found, and what save keeps.
	behind peer.Checkpoint
}

func (s settings) checkpoint() checkpoint {
	return checkpoint{dir: s.Checkpoint, run: s.Run, dataset: s.Dataset, model: s.Model}
}

func (c checkpoint) path() string { return filepath.Join(c.dir, checkpointFile) }

// load reads the model, if there is one, and returns the number of steps behind
// it. A file that is damaged or of another run is an error and is left alone.
func (c *checkpoint) load(into *tensor.Params) (steps uint64, err error) {
	file, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the checkpoint: %w", err)
	}
	defer file.Close()
	metadata, err := tensor.LoadSafetensors(file, into)
	switch {
	case errors.Is(err, tensor.ErrMismatch):
		err = fmt.Errorf("it holds another model than %s: %w", c.model, err)
	case err == nil:
		steps, err = c.check(metadata, into)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the checkpoint %s: %w\nMove it away, or give another folder with --checkpoint", c.path(), err)
	}
	return steps, nil
}

// check tells whether a file that fits the model is a checkpoint of this run.
func (c *checkpoint) check(metadata map[string]string, params *tensor.Params) (steps uint64, err error) {
	if metadata[keyFormat] != checkpointFormat {
		return 0, fmt.Errorf("it is no checkpoint of this program (to begin with its values, give it with --init)")
	}
	for _, k := range []string{keyRun, keyDataset, keyModel, keyLayout} {
		if want := c.metadata(0, params)[k]; metadata[k] != want {
			return 0, fmt.Errorf("it is of another %s, %.64q and not %q", k, metadata[k], want)
		}
	}
	if steps, err = strconv.ParseUint(metadata[keySteps], 10, 64); err != nil {
		return 0, fmt.Errorf("its number of steps: %w", err)
	}
	if !tensor.Finite(params.Vector()) {
		return 0, peer.ErrNotFinite
	}
	c.behind = behind(metadata)
	return steps, nil
}

// behind reads what lies behind a model, as far as the file tells.
func behind(metadata map[string]string) (found peer.Checkpoint) {
	age, err := strconv.ParseUint(metadata[keyAge], 10, 64)
	flock, err2 := strconv.ParseUint(metadata[keyFlock], 10, 64)
	if err != nil || err2 != nil {
		return found
	}
	return peer.Checkpoint{Steps: age, FlockSteps: flock}
}

func (c checkpoint) metadata(steps uint64, params *tensor.Params) map[string]string {
	hash := params.Layout().Hash()
	return map[string]string{
		keyFormat: checkpointFormat, keySteps: strconv.FormatUint(steps, 10),
		keyRun: c.run, keyDataset: c.dataset, keyModel: c.model, keyLayout: hex.EncodeToString(hash[:]),
		keyAge: strconv.FormatUint(c.behind.Steps, 10), keyFlock: strconv.FormatUint(c.behind.FlockSteps, 10),
	}
}

// create makes the folder, so that one that cannot be written to is noticed
// before hours of training.
func (c checkpoint) create() error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("making the checkpoint folder: %w", err)
	}
	probe, err := os.OpenFile(filepath.Join(c.dir, partialFile), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("writing to the checkpoint folder: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// save replaces the checkpoint in one step: whatever happens, the folder holds
// the old one or the new one, whole and on disk.
func (c checkpoint) save(params *tensor.Params, steps uint64) error {
	partial := filepath.Join(c.dir, partialFile)
	if err := writeSynced(partial, params, c.metadata(steps, params)); err != nil {
		return fmt.Errorf("writing the checkpoint: %w", errors.Join(err, remove(partial)))
	}
	if err := os.Rename(partial, c.path()); err != nil {
		return fmt.Errorf("writing the checkpoint: %w", errors.Join(err, remove(partial)))
	}
	syncFolder(c.dir)
	return nil
}

func writeSynced(path string, params *tensor.Params, metadata map[string]string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = tensor.WriteSafetensors(file, params, metadata)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes a rename last through a power cut, where the system can: not
// all of them open folders.
func syncFolder(dir string) {
	if folder, err := os.Open(dir); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}

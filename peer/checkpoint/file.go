package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// A checkpoint is a safetensors file: the model's tensors, then the optimizer's vectors, each as one tensor.
// Everything else is metadata.
const (
	formatName       = "murmuration-checkpoint-"
	formatVersion    = 3
	checkpointFormat = formatName + "3"
	// optimizerPrefix is the start of the names of the optimizer's vectors.
	optimizerPrefix = "optimizer/"
)

// Keys of a checkpoint's metadata.
const (
	keyFormat  = "format"
	keyRun     = "run"
	keyDataset = "dataset"
	keyModel   = "model"
	keyLayout  = "layout"
	keyBuild   = "build"  // build of the program that wrote it, for people
	keySaved   = "saved"  // time of writing, for people
	keySum     = "crc32c" // of all values
	keyHeader  = "header_crc32c"
	keyPeer    = "peer"  // id of the peer
	keySteps   = "steps" // the peer's own steps
	keyAge     = "age"   // all steps that the model contains
	keyFlock   = "flock_steps"
	keyTarget  = "target" // target of the flock's steps
	keyLife    = "incarnation"
	keyLedger  = "ledger" // what other members have done, as JSON
	// keySchedule is the schedule of the learning rate, as JSON.
	keySchedule  = "schedule"
	keyOptimizer = "optimizer"
	// keyOptimizerSteps is the optimizer's count of steps.
	keyOptimizerSteps = "optimizer_steps"
)

// Progress is the progress of a peer and its flock: the part of a peer.Checkpoint that is shown to people.
type Progress struct {
	// Steps are the peer's own steps, Age all steps that the model contains, FlockSteps those of all peers.
	Steps       uint64 `json:"steps"`
	Age         uint64 `json:"age"`
	FlockSteps  uint64 `json:"flock_steps"`
	Incarnation uint64 `json:"incarnation"`
	// Past are incarnations of other members.
	Past []json.RawMessage `json:"past"`
	// Description is the signed description of the run.
	Description description.Signed `json:"description"`
}

// counted are the numbers of a peer.Checkpoint with metadata of their own; the others are in the ledger.
var counted = []string{keySteps, keyAge, keyFlock, keyLife}

// progressMetadata adds the progress and the optimizer's name and state to metadata.
func progressMetadata(metadata map[string]string, c peer.Checkpoint, optimizer optim.State) error {
	text, err := c.MarshalBinary()
	if err != nil {
		return fmt.Errorf("encoding the checkpoint: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("encoding the checkpoint: %w", err)
	}
	for _, key := range counted {
		metadata[key] = string(all[key])
		delete(all, key)
	}
	if text, err = json.Marshal(all); err != nil {
		return fmt.Errorf("encoding the ledger: %w", err)
	}
	metadata[keyLedger], metadata[keyOptimizer], metadata[keyOptimizerSteps] = string(text), optimizer.Kind, strconv.FormatUint(optimizer.Steps, 10)
	return nil
}

// progressOf reads the metadata of progressMetadata.
func progressOf(metadata map[string]string) (c peer.Checkpoint, p Progress, optimizerSteps uint64, err error) {
	var faults []error
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(metadata[key], 10, 64)
		if err != nil {
			faults = append(faults, fmt.Errorf("its %s: %w", key, err))
		}
		return n
	}
	optimizerSteps = number(keyOptimizerSteps)
	all := make(map[string]any)
	var others map[string]json.RawMessage
	if err := json.Unmarshal([]byte(metadata[keyLedger]), &others); err != nil {
		faults = append(faults, fmt.Errorf("its ledger: %w", err))
	}
	for key, value := range others {
		all[key] = value
	}
	for _, key := range counted {
		all[key] = number(key)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = errors.Join(c.UnmarshalBinary(text), json.Unmarshal(text, &p))
	}
	return c, p, optimizerSteps, errors.Join(append(faults, err)...)
}

// checkFormat returns an error if this program cannot read a format.
func checkFormat(format string) error {
	text, ok := strings.CutPrefix(format, formatName)
	version, err := strconv.ParseUint(text, 10, 32)
	switch {
	case !ok || err != nil || version == 0:
		return errors.New("it is no checkpoint of this program, though its values may do to begin with")
	case version != formatVersion:
		return fmt.Errorf("it is of format %d, and this program knows format %d: use the release that wrote it", version, formatVersion)
	}
	return nil
}

// Read reads one checkpoint, which must be of the folder's run, and copies its values to params if all of it is
// valid.
func Read(c Folder, path string, params *tensor.Params) (*Taken, error) {
	read, metadata, err := readAll(path)
	if err != nil {
		return nil, err
	}
	if err := c.belongs(metadata); err != nil {
		return nil, err
	}
	if err := intact(read, metadata); err != nil {
		return nil, err
	}
	if !tensor.Finite(read.Vector()) {
		return nil, optim.ErrNotFinite
	}
	taken := &Taken{Path: path, metadata: metadata}
	var optimizerSteps uint64
	if taken.Checkpoint, taken.Progress, optimizerSteps, err = progressOf(metadata); err != nil {
		return nil, err
	}
	model, vectors, err := parts(read)
	if err != nil {
		return nil, err
	}
	var order []int
	if order, taken.Older, err = orderOf(model.Layout(), params.Layout(), c.Older); err != nil {
		return nil, fmt.Errorf("it holds another model than %s here, written by build %.64q and read by %q: %w", c.Model, cmp.Or(metadata[keyBuild], "unknown"), c.Build, err)
	}
	for name, vector := range vectors {
		if len(vector) != len(params.Vector()) {
			return nil, fmt.Errorf("the optimizer's %.64q has %d values, the model %d", name, len(vector), len(params.Vector()))
		}
		vectors[name] = make(tensor.Vector, len(vector)) // a copy, so that the file's other values do not stay in memory
		reorder(vectors[name], vector, order)
	}
	taken.Optimizer = optim.State{Kind: metadata[keyOptimizer], Steps: optimizerSteps, Vectors: vectors}
	reorder(params.Vector(), model.Vector(), order)
	taken.Params = params.Vector()
	return taken, nil
}

// parts returns the model in a file, and the optimizer's vectors by name; both share the file's memory.
func parts(read *tensor.Params) (model *tensor.Params, optimizer map[string]tensor.Vector, err error) {
	var (
		specs  []tensor.Spec
		values tensor.Vector
	)
	optimizer = make(map[string]tensor.Vector)
	for _, at := range read.Layout().Ranges() {
		part := read.Vector()[at.Offset : at.Offset+at.Len]
		if name, ok := strings.CutPrefix(at.Name, optimizerPrefix); ok {
			optimizer[name] = part
			continue
		}
		specs, values = append(specs, tensor.Spec{Name: at.Name, Shape: at.Shape}), append(values, part...)
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return nil, nil, err
	}
	model, err = tensor.WrapParams(layout, values)
	return model, optimizer, err
}

// File is a safetensors file in memory: a checkpoint, or a model of any program.
type File struct {
	// Tensors are all tensors, including the optimizer's vectors; Metadata is the rest of the header.
	Tensors  *tensor.Params
	Metadata map[string]string
}

// Open reads a file. A checkpoint must have this release's format. The values are not checked: see Intact.
func Open(path string) (*File, error) {
	tensors, metadata, err := readAll(path)
	f := &File{tensors, metadata}
	if err == nil && f.IsCheckpoint() {
		err = checkFormat(metadata[keyFormat])
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, nil
}

func readAll(path string) (*tensor.Params, map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return tensor.ReadSafetensors(file)
}

// Load copies the values to a model with the same tensors, in any order.
func (f *File) Load(model *tensor.Params) error {
	err := fits(f.Tensors.Layout(), model.Layout())
	if err == nil {
		reorder(model.Vector(), f.Tensors.Vector(), byName(f.Tensors.Layout(), model.Layout()))
	}
	return err
}

// IsCheckpoint tells whether the file is a checkpoint of this program.
func (f *File) IsCheckpoint() bool { return strings.HasPrefix(f.Metadata[keyFormat], formatName) }

// Intact returns an error if the file is damaged.
func (f *File) Intact() error { return intact(f.Tensors, f.Metadata) }

// Model is the file's model, without the optimizer's vectors.
func (f *File) Model() (*tensor.Params, error) {
	model, _, err := parts(f.Tensors)
	return model, err
}

// IsOptimizers tells by its name whether a tensor is one of the optimizer's vectors.
func IsOptimizers(tensor string) bool { return strings.HasPrefix(tensor, optimizerPrefix) }

// Progress is the progress of the peer and its flock.
func (f *File) Progress() (Progress, error) {
	_, p, _, err := progressOf(f.Metadata)
	return p, err
}

// Is tells whether a file is a checkpoint in a format that this program knows.
func Is(path string) bool {
	metadata, err := readMetadata(path)
	return err == nil && checkFormat(metadata[keyFormat]) == nil
}

// readMetadata reads only the metadata of a safetensors file.
func readMetadata(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return tensor.ReadSafetensorsMetadata(file)
}

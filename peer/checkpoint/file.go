package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// A checkpoint is a safetensors file: the model's tensors, then the optimizer's
// vectors, each in one piece. The rest is metadata.
const (
	formatName       = "murmuration-checkpoint-"
	formatVersion    = 3
	checkpointFormat = formatName + "3"
	// optimizerPrefix begins the names of the optimizer's vectors.
	optimizerPrefix = "optimizer/"
)

// Keys of a checkpoint's metadata.
const (
	keyFormat  = "format"
	keyRun     = "run"
	keyDataset = "dataset"
	keyModel   = "model"
	keyLayout  = "layout"
	keyBuild   = "build"  // what wrote it, for people
	keySaved   = "saved"  // when, for people
	keySum     = "crc32c" // of all values
	keyHeader  = "header_crc32c"
	keyPeer    = "peer"  // whose it is
	keySteps   = "steps" // the peer's own
	keyAge     = "age"   // all that lie behind the model
	keyFlock   = "flock_steps"
	keyTarget  = "target" // of the flock's steps
	keyLife    = "incarnation"
	keyLedger  = "ledger" // what others have done, as JSON
	// keySchedule is the course of the learning rate, as JSON.
	keySchedule  = "schedule"
	keyOptimizer = "optimizer"
	// keyOptimizerSteps is what the optimizer counts.
	keyOptimizerSteps = "optimizer_steps"
)

// ledger is what a peer has to remember of what others have done, so that a flock whose
// members all come back knows how far it was.
type ledger struct {
	Inherited uint64 `json:"inherited"`
	Peers     uint64 `json:"peers,omitempty"` // the most at once
	Past      []past `json:"past"`
	// Orders are what the operator has said, as signed.
	Orders [][]byte `json:"orders,omitempty"`
	// Description is that of the run, as signed.
	Description description.Signed `json:"description,omitzero"`
}

// past is one life of one of them.
type past struct {
	Peer        seam.PeerID `json:"peer"`
	Incarnation uint64      `json:"incarnation"`
	Steps       uint64      `json:"steps"`
	Resumed     bool        `json:"resumed,omitempty"`
}

// progressMetadata tells what was done, and adds it to metadata.
func progressMetadata(metadata map[string]string, s *peer.Saved) error {
	c, number := s.Checkpoint, func(n uint64) string { return strconv.FormatUint(n, 10) }
	others := ledger{Inherited: c.Inherited, Peers: c.Peers, Past: []past{}, Orders: c.Orders, Description: c.Description}
	for _, l := range c.Past {
		others.Past = append(others.Past, past(l))
	}
	text, err := json.Marshal(others)
	if err != nil {
		return fmt.Errorf("encoding the ledger: %w", err)
	}
	maps.Copy(metadata, map[string]string{
		keySteps: number(c.Own), keyAge: number(c.Steps), keyFlock: number(c.FlockSteps), keyLife: number(c.Incarnation),
		keyLedger: string(text), keyOptimizer: s.Optimizer.Kind, keyOptimizerSteps: number(s.Optimizer.Steps),
	})
	return nil
}

// progressOf reads back what progressMetadata has written.
func progressOf(metadata map[string]string) (c peer.Checkpoint, optimizerSteps uint64, err error) {
	var faults []error
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(metadata[key], 10, 64)
		if err != nil {
			faults = append(faults, fmt.Errorf("its %s: %w", key, err))
		}
		return n
	}
	c = peer.Checkpoint{Own: number(keySteps), Steps: number(keyAge), FlockSteps: number(keyFlock), Incarnation: number(keyLife)}
	if c.Incarnation >= seam.MaxIncarnation {
		faults = append(faults, fmt.Errorf("its %s is %d, which no peer reaches: the file is damaged", keyLife, c.Incarnation))
	}
	optimizerSteps = number(keyOptimizerSteps)
	var others ledger
	if err := json.Unmarshal([]byte(metadata[keyLedger]), &others); err != nil {
		faults = append(faults, fmt.Errorf("its ledger: %w", err))
	}
	if len(others.Past) > peer.MaxPast {
		faults = append(faults, fmt.Errorf("its ledger has %d lives, more than %d", len(others.Past), peer.MaxPast))
		others.Past = nil
	}
	c.Inherited, c.Peers, c.Orders, c.Description = others.Inherited, others.Peers, others.Orders, others.Description
	for _, l := range others.Past {
		c.Past = append(c.Past, peer.Past(l))
	}
	return c, optimizerSteps, errors.Join(faults...)
}

// checkFormat tells what keeps this program from reading a format.
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

// Read reads one checkpoint, which must be of the folder's run, and puts its values into
// params if all of it is sound.
func Read(c Folder, path string, params *tensor.Params) (*Taken, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	read, metadata, err := tensor.ReadSafetensors(file)
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
	progress, optimizerSteps, err := progressOf(metadata)
	if err != nil {
		return nil, err
	}
	taken.Checkpoint = progress
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
		vectors[name] = make(tensor.Vector, len(vector)) // so that the file's other values need not stay in memory
		reorder(vectors[name], vector, order)
	}
	taken.Optimizer = optim.State{Kind: metadata[keyOptimizer], Steps: optimizerSteps, Vectors: vectors}
	reorder(params.Vector(), model.Vector(), order)
	taken.Params = params.Vector()
	return taken, nil
}

// parts are the model in a file, and the optimizer's vectors by name, which are the file's
// own values.
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

// File is a safetensors file as it was read: a checkpoint, or a model of any program.
type File struct {
	// Tensors are all that it holds, the optimizer's vectors among them; Metadata what its
	// header says beside.
	Tensors  *tensor.Params
	Metadata map[string]string
}

// Open reads a file. A checkpoint must be of this release's format. What is in it is not
// checked: see Intact.
func Open(path string) (*File, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	f := &File{}
	f.Tensors, f.Metadata, err = tensor.ReadSafetensors(from)
	if err == nil && f.IsCheckpoint() {
		err = checkFormat(f.Metadata[keyFormat])
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, nil
}

// IsCheckpoint tells whether it is one of this program, and no other model.
func (f *File) IsCheckpoint() bool { return strings.HasPrefix(f.Metadata[keyFormat], formatName) }

// Intact tells what is damaged.
func (f *File) Intact() error { return intact(f.Tensors, f.Metadata) }

// Model is what it holds without the optimizer's vectors.
func (f *File) Model() (*tensor.Params, error) {
	model, _, err := parts(f.Tensors)
	return model, err
}

// IsOptimizers tells whether a tensor is one of the optimizer's vectors, by its name.
func IsOptimizers(tensor string) bool { return strings.HasPrefix(tensor, optimizerPrefix) }

// Progress is how far the peer and its flock were.
func (f *File) Progress() (peer.Checkpoint, error) {
	c, _, err := progressOf(f.Metadata)
	return c, err
}

// Is tells whether a file is a checkpoint of a format that this program knows.
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

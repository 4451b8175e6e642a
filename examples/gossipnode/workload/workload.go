// Package workload makes the work of a peer from settings: data, a model and its initial values.
package workload

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Workload is the work of a peer: its data, the model, and the initial values.
type Workload struct {
	Data    *dataset.Data
	Model   nets.Model
	Params  *tensor.Params
	Batches dataset.Batches
	Target  peer.Work
	// Prepared is how the rows of a table became numbers; nil for pictures.
	Prepared *prepare.Prepared
	// Resumed is the checkpoint with the initial values, or nil; refused lists the checkpoints that could not be
	// used.
	Resumed *checkpoint.Taken
	Refused []error
}

// Prepare loads the data, which must not be a table, and makes the model with its initial values. Before it has
// succeeded, nothing is written and no network is used. The caller must close the batches of the workload.
func Prepare(ctx context.Context, s settings.Settings, identity ed25519.PublicKey) (*Workload, error) {
	if err := checkMemory(s, 0, host.Memory()); err != nil {
		return nil, err
	}
	data, order, err := Load(ctx, s, identity)
	if err != nil {
		return nil, err
	}
	return Equip(s, data, order)
}

// Begin is Prepare with data that have been loaded.
func Begin(s settings.Settings, data *dataset.Data, identity ed25519.PublicKey) (*Workload, error) {
	part, parts, err := s.PartOf()
	if err != nil {
		return nil, cli.Usage(err)
	}
	return Equip(s, data, orderOf(s, part, parts, binary.LittleEndian.Uint64(identity)))
}

// Equip makes the workload of a peer from its data; order is the seed of their order.
func Equip(s settings.Settings, data *dataset.Data, order uint64) (_ *Workload, err error) {
	if err := checkMemory(s, data.Shape().Values(), host.Memory()); err != nil {
		return nil, err
	}
	w := &Workload{Data: data, Target: s.Work(data)}
	if w.Model, err = nets.Sized(s.Model, data.Shape(), data.Classes(), s.Sizes); err != nil {
		return nil, err
	}
	w.Params = tensor.NewParams(w.Model.Layout())
	if s.ModelStages() == 1 { // else a stage alone is made, once it is known which
		w.Model.Init(s.Seed, w.Params.Vector())
	}
	if s.Init != "" {
		if err := loadValues(s.Init, w.Params); err != nil {
			return nil, err
		}
	}
	if s.Checkpoint != "" && s.ModelStages() == 1 { // else it has a stage, which is not known yet
		if w.Resumed, w.Refused, err = Folder(s).Load(w.Params); err != nil {
			return nil, settings.Remedied(err)
		}
	}
	drawn := s.Drawn()
	if s.Follow != "" {
		drawn = max(1, min(drawn, data.Len())) // these batches are not used
	}
	if w.Batches, err = data.Batches(drawn, order^w.done(), s.Augmentation()); err != nil {
		return nil, cli.Usage(err)
	}
	return w, nil
}

// Load loads this peer's part of the data, which must not be a table, and a seed for the order in which it is used. Without a number of its
// part, a peer derives both from its identity.
func Load(ctx context.Context, s settings.Settings, identity ed25519.PublicKey) (data *dataset.Data, order uint64, err error) {
	config, err := s.DataConfig(binary.LittleEndian.Uint64(identity))
	if err != nil {
		return nil, 0, cli.Usage(err)
	}
	data, err = dataset.Load(ctx, config)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		return nil, 0, cli.Usage(err)
	}
	return data, orderOf(s, config.Part, config.Parts, config.PeerSeed), err
}

// orderOf is the seed of the order in which a peer uses its data.
func orderOf(s settings.Settings, part, parts int, peerSeed uint64) uint64 {
	if parts > 0 {
		return s.Order(part)
	}
	return s.Seed ^ peerSeed
}

// loadValues reads initial values from a safetensors file.
func loadValues(path string, into *tensor.Params) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading initial values: %w", err)
	}
	defer file.Close()
	_, err = into.LoadSafetensors(file)
	if errors.Is(err, tensor.ErrMismatch) && olderValues(path, into) {
		err = nil
	}
	if err != nil {
		if checkpoint.Is(path) {
			err = fmt.Errorf("%w\nIt is a checkpoint, which may hold an optimizer's state too: write its model with gossipnode export, and give that", err)
		}
		return fmt.Errorf("reading initial values from %s: %w", path, err)
	}
	if !tensor.Finite(into.Vector()) {
		return fmt.Errorf("reading initial values from %s: %w", path, optim.ErrNotFinite)
	}
	return nil
}

// olderValues reads a model that an older build has exported, and reports whether the file is one.
func olderValues(path string, into *tensor.Params) bool {
	read, err := checkpoint.Open(path)
	if err != nil || read.IsCheckpoint() {
		return false
	}
	order := nets.Older(read.Tensors.Layout(), into.Layout())
	for i, at := range order {
		into.Vector()[i] = read.Tensors.Vector()[at]
	}
	return order != nil
}

// Folder is the folder of a peer's checkpoints.
func Folder(s settings.Settings) checkpoint.Folder {
	folder := s.Checkpoints()
	folder.Build, folder.Older = control.Version(), nets.Older
	return folder
}

// Behind is the progress that the initial values contain.
func (w *Workload) Behind() peer.Checkpoint {
	if w.Resumed == nil {
		return peer.Checkpoint{}
	}
	return w.Resumed.Checkpoint
}

// done is how many steps this peer has taken in earlier incarnations.
func (w *Workload) done() uint64 {
	if w.Resumed == nil {
		return 0
	}
	return w.Resumed.Progress.Steps
}

// Codecs is the policy for this workload's model. A rule for ranges that the model does not have is a usage error.
func (w *Workload) Codecs(s settings.Settings) (quant.Policy, error) {
	policy, err := s.CodecPolicy()
	if err == nil {
		err = policy.Validate(w.Params.Layout())
	}
	if err != nil {
		return policy, cli.Usage(err)
	}
	return policy, nil
}

// Measured supplies batches of any size, from batches of single pictures.
type Measured struct {
	Singly dataset.Batches // batches of one picture each
	one    dataset.Batch
}

// Fill fills a batch with that many pictures.
func (m *Measured) Fill(b *dataset.Batch, pictures int) error {
	for row := range pictures {
		if err := m.Singly.Next(&m.one); err != nil {
			return err
		}
		inputs := len(m.one.X)
		if row == 0 {
			b.ResizeAs(&m.one, pictures)
		}
		copy(b.X[row*inputs:], m.one.X)
		copy(b.Labels[row*len(m.one.Labels):], m.one.Labels)
	}
	return nil
}

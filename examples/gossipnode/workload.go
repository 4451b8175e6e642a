package main

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// workload is what a peer learns: its data, the model, and where it begins.
type workload struct {
	data    *dataset.Data
	model   nets.Model
	params  *tensor.Params
	batches dataset.Batches
	target  peer.Work
	// resumed is the checkpoint that the initial values are of, nil without one, and
	// refused those that were passed over.
	resumed *checkpoint.Taken
	refused []error
}

// prepare loads the data and makes the model with its initial values. Nothing
// is written and nobody is spoken to before it has succeeded. The batches of the
// workload are to be closed.
func (s settings) prepare(identity ed25519.PublicKey) (*workload, error) {
	data, order, err := s.loadData(identity)
	if err != nil {
		return nil, err
	}
	return s.equip(data, order)
}

// equip makes the workload of a peer that has this data, seen in this order.
func (s settings) equip(data *dataset.Data, order uint64) (_ *workload, err error) {
	w := &workload{data: data, target: s.work(data)}
	if w.model, err = nets.ByName(s.Model, data.Shape(), data.Classes()); err != nil {
		return nil, err
	}
	w.params = tensor.NewParams(w.model.Layout())
	w.model.Init(s.Seed, w.params.Vector())
	if s.Init != "" {
		if err := loadValues(s.Init, w.params); err != nil {
			return nil, err
		}
	}
	if err := w.resume(s); err != nil {
		return nil, err
	}
	if w.batches, err = data.Batches(s.drawn(), order^w.behind().Own, s.augmentation()); err != nil {
		return nil, cli.Usage(err)
	}
	return w, nil
}

// maxNamedSkips bounds how many damaged records are named in the log.
const maxNamedSkips = 10

// introduce tells what is to be known of the data and of how models are coded.
func (t *training) introduce() {
	t.tellPolicy()
	if norm := t.data.Measured(); norm != nil {
		t.log.Info("normalization measured in the folder: peers whose folders hold other files must be given it with --normalize", zap.String("normalize", dataset.FormatNorm(norm)))
	}
	t.warnSkipped()
}

// warnSkipped names damaged records that have been met since it last did.
func (t *training) warnSkipped() {
	_, named := t.data.Skipped(t.skipped)
	for _, damaged := range named[:min(len(named), maxNamedSkips-t.skipped)] {
		t.log.Warn("skipping a damaged record", zap.Error(damaged))
		t.skipped++
	}
}

// checkFolders refuses files where folders are wanted. What is not there is seen
// later: a checkpoint's folder is made.
func (s settings) checkFolders() error {
	var faults []error
	for _, f := range []struct{ flag, path, remedy string }{
		{"data", s.Data, "give the folder that it is in"},
		{"checkpoint", s.Checkpoint, "give a folder; to begin with the values of a file, give it with --init"},
	} {
		if info, err := os.Stat(f.path); f.path != "" && err == nil && !info.IsDir() {
			faults = append(faults, cli.Faultf(f.flag, "%s is a file: %s", f.path, f.remedy))
		}
	}
	return errors.Join(faults...)
}

// loadData loads this peer's part, and a seed for the order in which it is seen.
// A peer without a part takes both from its identity.
func (s settings) loadData(identity ed25519.PublicKey) (data *dataset.Data, order uint64, err error) {
	config, err := s.dataConfig(binary.LittleEndian.Uint64(identity))
	if err != nil {
		return nil, 0, cli.Usage(err)
	}
	data, err = dataset.Load(config)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		return nil, 0, cli.Usage(err)
	}
	order = s.Seed ^ config.PeerSeed
	if config.Parts > 0 {
		order = s.order(config.Part)
	}
	return data, order, err
}

// order is the seed of the order in which the peer of a part sees its data.
func (s dataSettings) order(part int) uint64 { return s.Seed*maxPeers + uint64(part) }

// dataConfig is what the settings say of the data.
func (s dataSettings) dataConfig(peerSeed uint64) (c dataset.Config, err error) {
	c = dataset.Config{Name: s.Dataset, Dir: s.Data, Seed: s.Seed, PeerSeed: peerSeed, Memory: int64(s.Memory) << 20}
	if c.Part, c.Parts, err = parsePart(s.Part); err != nil {
		return c, err
	}
	if c.Shard, err = dataset.ParseShard(s.Shard); err != nil {
		return c, err
	}
	if s.Normalize != "" {
		c.Norm, err = dataset.ParseNorm(s.Normalize)
	}
	return c, err
}

// augmentation is that of --augment; validate has seen to it.
func (s dataSettings) augmentation() dataset.Augment {
	if s.Augment == augmentAuto {
		return dataset.DefaultAugment(s.Dataset)
	}
	augment, _ := dataset.ParseAugment(s.Augment)
	return augment
}

// work is how much the flock has to do; a peer that trains alone is a flock of
// one that has its own part only.
func (s settings) work(data *dataset.Data) peer.Work {
	if s.Steps > 0 {
		return peer.Work{StepsPerPeer: s.Steps}
	}
	pictures := data.Total
	if s.Strategy == strategyAlone {
		pictures = data.Len()
	}
	steps := math.Ceil(s.epochs() * float64(pictures) / float64(s.Batch))
	return peer.Work{Steps: uint64(max(steps, 1))}
}

// loadValues reads initial values from a safetensors file.
func loadValues(path string, into *tensor.Params) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading initial values: %w", err)
	}
	defer file.Close()
	if _, err := tensor.LoadSafetensors(file, into); err != nil {
		if checkpoint.Is(path) {
			err = fmt.Errorf("%w\nIt is a checkpoint, which may hold an optimizer's state too: write its model with gossipnode export, and give that", err)
		}
		return fmt.Errorf("reading initial values from %s: %w", path, err)
	}
	if !tensor.Finite(into.Vector()) {
		return fmt.Errorf("reading initial values from %s: %w", path, peer.ErrNotFinite)
	}
	return nil
}

package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/rows"
)

// dataSettings choose the data and the model.
type dataSettings struct {
	Dataset string
	Data    string
	Shard   string
	Part    string
	travel
	following
	Augment   string
	Normalize string
	Size      string
	Memory    int
	Model     string
	Sizes     nets.Sizes // of a gpt
	Init      string
	Seed      uint64
	// Table has the settings for tables only. Rows adds those above that tables use, too.
	Table Table
	// Pipeline is the file with the pipeline that prepares rows; Preparation is its hash, once it is known.
	Pipeline, Preparation string
}

// travel says whether this peer holds rows for others, or trains on rows of others.
type travel struct {
	Hold         bool // this peer holds rows for others, and does not train
	HoldAndTrain bool // this peer trains on its rows, and gives them to others too
	TrainOnly    bool // this peer trains on rows of holders, and holds none
	Hops         int
	HandOut      string
}

// Gives tells whether this peer gives rows to others.
func (t travel) Gives() bool { return t.Hold || t.HoldAndTrain }

// Unused are the faults of flags that are only for peers that give rows, or that take some.
func (t travel) Unused(gives, takes bool) []error {
	var faults cli.Faults
	faults.If(t.Hops > 1 && !takes, hopsFlag, "%d: is for peers that take rows of others: give run --train-only, or local --holders, too", t.Hops)
	faults.If(t.HandOut != HandOuts()[rows.Random] && !gives, handOutFlag, "%s: is for peers that give rows to others: give run --hold or --hold-and-train, or local --holders, too", t.HandOut)
	return faults
}

func (s *dataSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Dataset, "dataset", dataset.Datasets()[0], cli.List(datasets()))
	flags.StringVar(&s.Data, "data", "", "folder of the data set's files, as data fetch makes it; or your own pictures or texts (docs/GUIDE.md); of tables, files of rows. glyphs and gosource need none")
	flags.StringVar(&s.Shard, "shard", ShardIID, "how the data is divided: iid, dirichlet=ALPHA (skewed labels) or files (each peer reads its own); of tables, rows (at random) or by=COLUMN (a value at one peer)")
	flags.StringVar(&s.Part, "part", "", "I/N, this peer's part of the data, from 0 (default: all; of glyphs a quarter)")
	flags.BoolVar(&s.Hold, "hold", false, "hold the data for members that train with --train-only, and do not train: rows LEAVE this peer, to members of the run only (default: none does)")
	flags.BoolVar(&s.HoldAndTrain, holdAndTrainFlag, false, "train on this peer's data, and give it to members that train with --train-only: rows LEAVE this peer, as with --hold")
	flags.BoolVar(&s.TrainOnly, "train-only", false, "train on rows of members that run with --hold, and hold none: --data and --part are theirs")
	flags.IntVar(&s.Hops, hopsFlag, 1, "with --train-only, through how many holders a row comes: with 2 each holder mixes the rows of all, and this peer asks only one")
	flags.StringVar(&s.HandOut, handOutFlag, HandOuts()[rows.Random], "with --hold or --hold-and-train, how the rows of an epoch are divided among those that train: "+cli.List(HandOuts()))
	flags.StringVar(&s.Augment, "augment", augmentAuto, "how training pictures are varied: none, flip, crop, flip+crop (by up to 4 pixels), or auto: flip+crop for cifar10 and cifar100, none for others")
	flags.StringVar(&s.Normalize, "normalize", "", "MEAN/SCALE of pictures, or of each channel, as in 0.5,0.5,0.4/0.2,0.2,0.3; "+OfFlock+": of all peers' pictures. The same for all peers (default: the data set's own)")
	flags.StringVar(&s.Size, sizeFlag, "", fmt.Sprintf("WxH, to which images are cropped and resized, as in 96x64; the same for all peers (default: that of most in the folder; %dx%d if they are mixed)", dataset.MixedSide, dataset.MixedSide))
	flags.IntVar(&s.Memory, "memory", defaultMemory, "MiB of decoded training pictures to keep; images that do not fit are decoded again in each pass. Rows of a table may take so much, and 1024 in any case")
	flags.StringVar(&s.Model, "model", nets.Names()[0], cli.List(nets.Names()))
	registerSizes(flags, &s.Sizes)
	flags.StringVar(&s.Init, "init", "", "safetensors file of the initial values, the same for all peers (default: made from --seed)")
	flags.Uint64Var(&s.Seed, "seed", 1, "seed of the initial values, the parts and the drawn pictures, the same for all peers")
}

func (s dataSettings) faults() []error {
	var faults cli.Faults
	faults.Add(
		cli.OneOf("dataset", s.Dataset, datasets()),
		cli.OneOf("model", s.Model, nets.Names()),
	)
	faults.If(s.Hold && s.TrainOnly, "hold", "is for peers that hold data and do not train, and --train-only for others: --hold-and-train does both, on the data that it holds")
	faults.If(s.HoldAndTrain && (s.Hold || s.TrainOnly), holdAndTrainFlag, "holds data and trains on it: leave out --hold and --train-only")
	faults.If((s.Gives() || s.TrainOnly) && s.Normalize == OfFlock, "normalize", "%s: is measured by peers that train on their own data only: give MEAN/SCALE", OfFlock)
	faults.If((s.Gives() || s.TrainOnly) && s.Table.ShareRows > 0, shareRowsFlag, "is for peers that train on their own rows only: holders give theirs batch by batch, so leave it out")
	faults.If(s.TrainOnly && s.Data != "", "data", "%s: with --train-only this peer trains on what holders give, and reads none: leave out either", s.Data)
	faults.If(s.TrainOnly && s.Part != "", "part", "%s: is of the data of holders: leave it out, or --train-only", s.Part)
	faults.Add(cli.Within(hopsFlag, s.Hops, 1, rows.MaxHops), cli.OneOf(handOutFlag, s.HandOut, HandOuts()))
	faults.If(s.Hops > 1 && s.Dividing() != rows.Random, hopsFlag, "goes with --hand-out random only: the others give shares to those that ask a holder, and with hops these are holders that pass rows on")
	if s.IsTable() {
		return append(faults, s.tableFaults()...)
	}
	faults.Add(s.Table.ReadingFaults()...)
	faults.If(s.Table.Target != "", "target", "is for tables: give --dataset %s, too", cli.List(TableFormats()))
	faults.If(s.Pipeline != "", "pipeline", "is for tables: give --dataset %s, too", cli.List(TableFormats()))
	faults.Add(textFaults(s)...)
	faults.If(s.Data == "" && !s.TrainOnly && s.Follow == "" && s.Dataset != dataset.Datasets()[0] && s.Dataset != dataset.GoSource && slices.Contains(dataset.Datasets(), s.Dataset), "dataset", "%s needs --data, the folder of its files", s.Dataset)
	shard, err := dataset.ParseShard(s.Shard)
	faults.If(err != nil, "shard", "%q: want iid, files, or dirichlet=ALPHA with ALPHA from %v to %v", s.Shard, dataset.MinAlpha, dataset.MaxAlpha)
	_, err = dataset.ParseAugment(s.Augment)
	faults.If(err != nil && s.Augment != augmentAuto, "augment", "%q: want auto, none, flip, crop or flip+crop", s.Augment)
	_, err = dataset.ParseNorm(s.Normalize)
	faults.If(s.Normalize == OfFlock && s.Dataset == dataset.Datasets()[0], "normalize", "%s: %s have a normalization of their own", OfFlock, s.Dataset)
	faults.If(err != nil && s.Normalize != "" && s.Normalize != OfFlock, "normalize", "%q: want MEAN/SCALE, or one of each for every channel, as in 0.5,0.5,0.4/0.2,0.2,0.3", s.Normalize)
	_, _, err = parseSize(s.Size)
	faults.Add(err)
	faults.Add(cli.Within("memory", s.Memory, 1, maxMemory))
	_, _, err = parsePart(s.Part)
	faults.Add(err)
	faults.If(s.Part == "" && shard != (dataset.Shard{}), "shard", "%s cuts the data into parts: say with --part I/N which is this peer's", s.Shard)
	return faults
}

const (
	holdAndTrainFlag = "hold-and-train"
	hopsFlag         = "hops"
	handOutFlag      = "hand-out"
)

// HandOuts are the ways in which holders divide rows.
func HandOuts() []string {
	return []string{rows.Random: "random", rows.RoundRobin: "round-robin", rows.Speed: "speed"}
}

// Dividing is the policy of --hand-out, which faults has checked.
func (t travel) Dividing() rows.Policy { return rows.Policy(slices.Index(HandOuts(), t.HandOut)) }

// PartOf is the number of this peer's part, from 0, and the number of parts; 0, 0 means all the data.
func (s dataSettings) PartOf() (part, parts int, err error) { return parsePart(s.Part) }

// parsePart reads I/N. Without a part, parts is 0.
func parsePart(text string) (part, parts int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	i, n, _ := strings.Cut(text, "/")
	part, err = strconv.Atoi(i)
	parts, err2 := strconv.Atoi(n)
	if err != nil || err2 != nil || parts < 1 || parts > MaxPeers || part < 0 || part >= parts {
		return 0, 0, cli.Faultf("part", "%q: want I/N, as in 0/4, with N from 1 to %d and I from 0 to N-1", text, MaxPeers)
	}
	return part, parts, nil
}

const sizeFlag = "size"

// OfFlock is the value of --normalize for a normalization that the members measure together.
const OfFlock = "flock"

// parseSize reads WxH. Without a size, both are 0.
func parseSize(text string) (width, height int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	w, h, _ := strings.Cut(text, "x")
	width, err = strconv.Atoi(w)
	height, err2 := strconv.Atoi(h)
	if err != nil || err2 != nil || width < 1 || height < 1 || width > dataset.MaxPixels/height {
		return 0, 0, cli.Faultf(sizeFlag, "%q: want WxH, as in 96x64, of at most %d pixels", text, dataset.MaxPixels)
	}
	return width, height, nil
}

// Order is the seed of the order in which the peer of a part sees its data. It differs between the
// parts of a run. The factor must not change: recorded runs were made with it.
func (s dataSettings) Order(part int) uint64 { return s.Seed*1000 + uint64(part) }

// DataConfig turns the settings into a configuration for package dataset.
func (s dataSettings) DataConfig(peerSeed uint64) (c dataset.Config, err error) {
	c = dataset.Config{Name: s.Dataset, Dir: s.Data, Seed: s.Seed, PeerSeed: peerSeed, Memory: int64(s.Memory) << 20, Decoded: s.Table.decoded()}
	if c.Part, c.Parts, err = parsePart(s.Part); err != nil {
		return c, err
	}
	if c.Shard, err = dataset.ParseShard(s.Shard); err != nil {
		return c, err
	}
	if c.Width, c.Height, err = parseSize(s.Size); err != nil {
		return c, err
	}
	if s.IsText() {
		c.Window = s.Sizes.Context
	}
	if s.Normalize != "" && s.Normalize != OfFlock {
		c.Norm, err = dataset.ParseNorm(s.Normalize)
	}
	return c, err
}

// Augmentation is the value of --augment, which Validate has checked.
func (s dataSettings) Augmentation() dataset.Augment {
	if s.Augment == augmentAuto {
		return dataset.DefaultAugment(s.Dataset)
	}
	augment, _ := dataset.ParseAugment(s.Augment)
	return augment
}

// ShardIID is the default of --shard: the data is divided at random.
const ShardIID = "iid"

// maxMemory bounds --memory, in MiB.
const maxMemory = 1 << 20

// Begins tells whether the data that the run begins with is the first file that comes.
func (s dataSettings) Begins() bool {
	return s.Follow != "" && (s.Data == "" || s.Begun) && s.Dataset != dataset.Datasets()[0]
}

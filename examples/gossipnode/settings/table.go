package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/decoded"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Table says which rows and columns of a table are used, and which target is learned.
type Table struct {
	// Data, Format and Shard come from the flags of fit with these names, or from run's; see Rows.
	Data          []string
	Format, Shard string
	// Memory is the most memory, in MiB, for rows that are read; 0 means DefaultTableMemory.
	Memory int
	texts

	Target              string
	Drop                []string
	Categories, Numbers []string
	Split               string
	Tolerance, Floor    float64
	MaxValues           int
	Distinct            bool
	ShareRows           int
	Stages              Stages
}

// texts say how this member's files are read.
type texts struct {
	Encoding, Separator, Decimal string
	Missing                      []string
	// DecodeOnce keeps decoded data for other jobs on this machine.
	DecodeOnce bool
}

const (
	defaultSplit     = "hash:7/10"
	noSplit          = "none"
	defaultFloor     = 20
	defaultMaxValues = 256

	// DefaultTableMemory, in MiB, is far more than suits learners on one machine. It still guards
	// against a small file that unpacks to much more.
	DefaultTableMemory = 1024
	// DefaultShard divides rows at random.
	DefaultShard = "rows"
	// TopicTables is the topic of the flags for tables.
	TopicTables = "Tables"
)

// TableFormats are the formats of tables, and the names of data sets that are tables.
func TableFormats() []string { return []string{"csv", "tsv", "jsonl", "parquet"} }

// Register adds the flags that commands on tables have in common.
func (t *Table) Register(flags *pflag.FlagSet) {
	flags.StringVar(&t.Target, "target", "", "what to learn: a column, or a comparison such as 'arr_delay>15' or 'carrier=UA'")
	flags.StringSliceVar(&t.Drop, "drop", nil, "columns to leave out, separated by commas; repeatable")
	flags.StringVar(&t.Split, "split", defaultSplit, "which rows train; the others give the scores: row:7/10 (by number), hash:7/10, hash:COLUMN:7/10, or "+noSplit)
	flags.StringSliceVar(&t.Categories, "categories", nil, "columns that are categories, although their first values are numbers; separated by commas")
	flags.StringSliceVar(&t.Numbers, "numbers", nil, "columns that are numbers, although some value is none; rows with one are damaged")
	t.RegisterReading(flags)
	flags.Float64Var(&t.Floor, "floor", defaultFloor, "values of categories with fewer rows count as one")
	flags.BoolVar(&t.Distinct, "distinct", false, "of rows that train and are equal but for --drop, over all peers, keep one")
	flags.IntVar(&t.MaxValues, "max-values", defaultMaxValues, "categories with more distinct values are left out")
	flags.Var(&t.Stages, stagesFlag, "`K|FILE`: cut the model into K stages, each trained by some of the peers; or the file with the stages that prepare rows, in YAML or JSON (default: what suits)")
}

// RegisterReading adds the flags that say how files are read. They may differ between members.
func (t *Table) RegisterReading(flags *pflag.FlagSet) {
	flags.Float64Var(&t.Tolerance, "tolerance", 0, fmt.Sprintf("share of the rows that may be damaged and are set aside (default %g)", read.DefaultTolerance))
	flags.StringVar(&t.Encoding, "encoding", "utf-8", "of text files: utf-8, windows-1252 (as Excel's CSV often is), utf-16le, iso-8859-15 and others; a byte order mark counts more")
	flags.StringVar(&t.Separator, "separator", "", "what stands between the fields of a csv or tsv line, such as ';' (default: a comma, or a tab)")
	flags.StringVar(&t.Decimal, "decimal", ".", "what stands before the fraction of a number in csv and tsv: . or ,")
	flags.BoolVar(&t.DecodeOnce, "decode-once", false, fmt.Sprintf("keep decoded rows and pictures in the user's cache directory, at most %d GiB, so that jobs on one machine decode them once", decoded.DefaultLimit>>30))
	flags.StringSliceVar(&t.Missing, "missing", nil, "texts that stand for a missing value, beside "+cli.List(read.DefaultMissing[1:]))
}

// Reading is the configuration for reading files.
func (t Table) Reading() read.Config {
	one := func(text string) byte { return append([]byte(text), 0)[0] }
	return read.Config{
		Format: t.Format, Kinds: t.Kinds(), Tolerance: t.Tolerance, Encoding: t.Encoding, Separator: one(t.Separator), Point: one(t.Decimal),
		Missing: append(slices.Clone(read.DefaultMissing), t.Missing...), Decoded: t.decoded(),
	}
}

// decoded is the folder that keeps decoded data; nil if none is kept.
func (t Table) decoded() *decoded.Folder {
	if !t.DecodeOnce {
		return nil
	}
	folder, _ := decoded.OfUser() // ReadingFaults has checked it
	return folder
}

// ReadingFaults are the errors in the flags of RegisterReading.
func (t Table) ReadingFaults() (faults cli.Faults) {
	faults.If(t.Format != "" && !slices.Contains(TableFormats(), t.Format), "format", "%q: want %s", t.Format, cli.List(TableFormats()))
	faults.If(!(t.Tolerance < 1), "tolerance", "%g: want less than 1", t.Tolerance)
	faults.If(t.Separator != "" && (len(t.Separator) > 1 || strings.ContainsAny(t.Separator, "\"\r\n") || t.Separator[0] > '~' || t.Separator == t.Decimal), "separator", "%q: want one character, such as ';', and not that of --decimal", t.Separator)
	faults.If(t.Decimal != "" && t.Decimal != "." && t.Decimal != ",", "decimal", "%q: want . or ,", t.Decimal)
	err := read.CheckEncoding(t.Encoding)
	faults.If(err != nil, "encoding", "%v", err)
	_, err = decoded.OfUser()
	faults.If(t.DecodeOnce && err != nil, "decode-once", "needs a cache directory of this user: %v", err)
	return faults
}

// Faults are the errors in all flags for tables.
func (t Table) Faults() []error {
	var faults cli.Faults
	faults.If(len(t.Data) == 0, "data", "is missing: give the file of rows to learn from")
	if t.Target != "" {
		target, err := table.ParseTarget(t.Target)
		faults.If(err != nil, "target", "%q: %v", t.Target, err)
		faults.If(err == nil && slices.Contains(t.Drop, target.Column), "drop", "%s: is the column of --target", target.Column)
	}
	_, _, err := t.Task(nil).Parts()
	faults.If(err != nil, "split", "%q: %v", t.Split, err)
	_, err = table.ParseShard(t.Shard)
	faults.If(err != nil, "shard", "%q: %v", t.Shard, err)
	for flag, usual := range map[string]bool{"floor": t.Floor == defaultFloor, "max-values": t.MaxValues == defaultMaxValues} {
		faults.If(t.Stages.List != nil && !usual, flag, "is for preparation without --stages: give the stages there floors, and dropmany")
	}
	return append(faults, t.ReadingFaults()...)
}

// Task describes all steps from the rows to a model, but for the learner. Shared has the settings that members compare,
// by flag.
func (t Table) Task(shared map[string]string) learn.Task {
	named := map[string]string{}
	for flag, value := range shared {
		named["--"+flag] = value
	}
	return learn.Task{
		Plan: prepare.Plan{
			Target: t.Target, Drop: t.Drop, Split: strings.TrimSuffix(t.Split, noSplit), Distinct: t.Distinct, Stages: t.Stages.List,
			Memory: int64(cmp.Or(t.Memory, DefaultTableMemory)) << 20, Settings: named,
		},
		Usual: prepare.Usual{Floor: t.Floor, MaxValues: cmp.Or(t.MaxValues, -1), Categories: t.Categories},
	}
}

// Kinds are the kinds of columns that --categories and --numbers name.
func (t Table) Kinds() map[string]table.Kind {
	kinds := map[string]table.Kind{}
	for _, name := range t.Categories {
		kinds[name] = table.Category
	}
	for _, name := range t.Numbers {
		kinds[name] = table.Number
	}
	return kinds
}

// datasets are the names of all data sets.
func datasets() []string { return append(dataset.Datasets(), TableFormats()...) }

// tableModels are the models that learn from rows of numbers.
func tableModels() []string { return []string{"mlp", "softmax"} }

// IsTable tells whether the data set is a table.
func (s dataSettings) IsTable() bool { return slices.Contains(TableFormats(), s.Dataset) }

// Rows is Table with Data, Format, Shard and Memory from the flags of run.
func (s dataSettings) Rows() Table {
	t := s.Table
	t.Format, t.Shard, t.Memory = s.Dataset, s.Shard, max(s.Memory, DefaultTableMemory)
	if s.Shard == ShardIID {
		t.Shard = DefaultShard
	}
	if s.Data != "" {
		t.Data = []string{s.Data}
	}
	return t
}

// tableFaults is faults for a data set that is a table.
func (s dataSettings) tableFaults() []error {
	rows := s.Rows()
	if s.TrainOnly || s.Begins() {
		rows.Data = []string{"of others, or what comes first"}
	}
	faults := cli.Faults(rows.Faults())
	faults.If(s.Table.Target == "", "target", "is missing: give the column that is to be learned, or a comparison such as 'arr_delay>15'")
	faults.If(!slices.Contains(tableModels(), s.Model) && slices.Contains(nets.Names(), s.Model), "model", "%s is for pictures: for tables, want %s", s.Model, cli.List(tableModels()))
	faults.If(s.Table.ShareRows < 0, shareRowsFlag, "%d: want 0 or more rows", s.Table.ShareRows)
	faults.If(s.Augment != augmentAuto && s.Augment != "none", "augment", "is for pictures: leave it out for tables")
	faults.If(s.Normalize != "", "normalize", "is for pictures: the columns of tables are standardized in any case")
	faults.If(s.Size != "", sizeFlag, "is for pictures: leave it out for tables")
	_, _, err := parsePart(s.Part)
	faults.Add(err)
	faults.If(s.Part == "" && s.Shard != ShardIID, "shard", "%s divides the rows: say with --part I/N which part is this peer's", s.Shard)
	return faults
}

const shareRowsFlag = "share-rows"

// SharedByTables are the flags for tables whose values must be the same for all members of a run.
func SharedByTables() []string {
	return []string{"target", "drop", "split", "categories", "numbers", "floor", "max-values", "distinct", stagesFlag}
}

// flags is the set of flags for tables. They read and set the fields of t.
func (t *Table) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	kept := *t
	t.Register(flags)
	*t = kept
	return flags
}

// Shared are the settings for tables that must be the same for all members of a run, by flag.
func (t Table) Shared() map[string]string {
	alike, flags := map[string]string{shareRowsFlag: strconv.Itoa(t.ShareRows)}, t.flags()
	for _, name := range SharedByTables() {
		alike[name] = cli.TextOf(flags.Lookup(name))
	}
	return alike
}

// Set sets a flag to a value that Shared returned.
func (t *Table) Set(flag, value string) error { return cli.SetText(t.flags().Lookup(flag), value) }

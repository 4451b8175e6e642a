package rundescription

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// field is a setting that the members of a run have in common.
type field struct {
	name  string
	flags []string // the flags that set the value
	local bool     // members may differ
	table bool     // only for data sets that are tables; unknown if empty or too long
	value func(values) string
	// take sets the flags to the run's value; nil if another member cannot know the value.
	take func(s values, value string) error
}

// values are settings with the flags that read and set them.
type values struct {
	*settings.Settings
	flags *pflag.FlagSet
}

// flag is a field with the text of one flag.
func flag(name string, local bool) field {
	return field{
		name: name, flags: []string{name}, local: local,
		value: func(s values) string { return s.flags.Lookup(name).Value.String() },
		take:  func(s values, value string) error { return s.flags.Lookup(name).Value.Set(value) },
	}
}

// number is a flag whose value, if 0, follows from other settings.
func number(name string, of func(settings.Settings) float64) field {
	f := flag(name, false)
	f.value = func(s values) string { return fmt.Sprint(of(*s.Settings)) }
	return f
}

// shape is the topology, whose default follows from the strategy.
func shape() field {
	f := flag("topology", false)
	f.value = func(s values) string { return s.Shape().String() }
	return f
}

// longestWait bounds waits that are taken over: otherwise a member could make this peer wait forever.
const longestWait = 24 * time.Hour

// wait is a flag whose value is a time to wait.
func wait(name string, of func(*settings.Settings) *time.Duration) field {
	f := flag(name, true)
	f.take = func(s values, value string) error {
		d, err := time.ParseDuration(value)
		if err == nil {
			*of(s.Settings) = min(d, longestWait)
		}
		return err
	}
	return f
}

// fields are all fields. A difference that would harm models or the work is refused; each peer chooses the rest
// (local).
func fields() []field {
	return append(tableFields(), []field{
		flag("dataset", false), flag("model", false), flag("layers", false), flag("width", false), flag("heads", false), flag("context", false), flag("hidden", false),
		{name: "work", flags: []string{"steps", "epochs"}, value: work, take: takeWork},
		{name: "tasks", flags: []string{"tasks"}, value: func(s values) string { return map[bool]string{true: "of files", false: "none"}[s.TaskFile != ""] }},
		{name: "follows", flags: []string{"follow", "policy", "price"}, value: follows},
		ofData("size"), ofData("normalize"), flag("optimizer", false), number("lr", settings.Settings.Rate),
		flag("schedule", false), flag("warmup", false), flag("lr-floor", false), flag("weight-decay", false), flag("clip", false),
		number("beta2", settings.Settings.OtherBeta2), number("momentum", settings.Settings.OtherMomentum),
		{
			name: StagesField, flags: []string{"stages", settings.EndsStayFlag}, value: stagesOf,
			take: func(s values, value string) error {
				s.EndsStay = strings.HasSuffix(value, EndsStay)
				return s.Table.Stages.Take(strings.Split(value, " ")[0])
			},
		},
		flag("activations", true), flag("strategy", false), shape(), flag("servers", false), flag("global-batch", false), flag("seed", false), flag("final", false), flag("final-weights", true),
		wait("final-wait", func(s *settings.Settings) *time.Duration { return &s.FinalWait }),
		flag("min-peers", true),
		wait("min-peers-wait", func(s *settings.Settings) *time.Duration { return &s.MinPeersWait }),
		flag("operator", false), flag("batch", true), flag("accumulate", true), flag("every", true), flag("burst", true), flag("outer-momentum", true), flag("outer-rate", true), flag("codec", true), flag("quantized", true), flag("augment", true),
		{
			name: "until", flags: []string{"until"}, local: true,
			value: func(s values) string { return strings.Join(s.Until, " ") },
			take:  func(s values, value string) error { s.Until = strings.Fields(value); return nil },
		},
		flag("deadline", true), flag("cross-evaluate", true),
		{name: "initial values", flags: []string{"init"}, local: true, value: initial},
		{name: "codec policy", flags: []string{"policy"}, local: true, value: func(s values) string { return digest(codecFile(s)) }},
		{name: "admission", flags: []string{"allow", "run-key"}, local: true, value: admission},
	}...)
}

// follows says by which policy members train on what arrives.
func follows(s values) string {
	if s.Follow == "" {
		return "none"
	}
	return fmt.Sprint(s.FollowPolicy(), " ", s.Price)
}

// codecFile is the file of --policy, if it is one.
func codecFile(s values) string {
	if s.Follow != "" {
		return ""
	}
	return s.Policy
}

// fieldOf returns the field of a name.
func fieldOf(name string) (field, bool) {
	all := fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return all[i], true
}

// tableFields are the fields of data sets that are tables. --share-rows, which lets rows leave their peer, is not
// among them: it is never taken over.
func tableFields() []field {
	fields := []field{{
		name: "preparation", flags: []string{"preparation"},
		value: func(s values) string { return s.Preparation },
		take:  func(s values, value string) error { s.Preparation = value; return nil },
	}}
	for _, flag := range settings.SharedByTables() {
		fields = append(fields, field{
			name: flag, flags: []string{flag},
			value: func(s values) string { return s.Table.Shared()[flag] },
			take:  func(s values, value string) error { return s.Table.Set(flag, value) },
		})
	}
	for i := range fields {
		fields[i].table = true
	}
	return fields
}

// StagesField is the field that says into how many stages the model is cut, before anything else.
const StagesField = "stages of the model"

// EndsStay ends the text of that field where the first and the last stage stay with the data.
const EndsStay = ", the ends stay"

// stagesOf is into how many stages the model is cut, and the size of micro-batches, which is the same for all.
func stagesOf(s values) string {
	n := s.ModelStages()
	if n == 1 {
		return "1"
	}
	examples, _ := s.MicroBatch()
	text := fmt.Sprintf("%d of micro-batches of %d", n, examples)
	if s.EndsStay {
		text += EndsStay
	}
	return text
}

// work is the amount of work.
func work(s values) string {
	if s.Steps > 0 {
		return fmt.Sprintf("%d steps", s.Steps)
	}
	return fmt.Sprintf("%v epochs", s.Passes())
}

func takeWork(s values, value string) error {
	amount, unit, _ := strings.Cut(value, " ")
	var err error
	switch unit {
	case "steps":
		s.Steps, err = strconv.ParseUint(amount, 10, 64)
	case "epochs":
		s.Steps = 0
		s.Epochs, err = strconv.ParseFloat(amount, 64)
	default:
		err = fmt.Errorf("no number of steps or epochs")
	}
	return err
}

// itsOwn stands for a default of the data set.
const itsOwn = "the data set's own"

// ofData is a flag whose default depends on the data set.
func ofData(name string) field {
	own := flag(name, false)
	f := own
	f.value = func(s values) string { return cmp.Or(own.value(s), itsOwn) }
	f.take = func(s values, value string) error { return own.take(s, strings.TrimSuffix(value, itsOwn)) }
	return f
}

// initial is the origin of the initial model.
func initial(s values) string {
	if s.Init == "" {
		return "of the seed"
	}
	return digest(s.Init)
}

// admission is the requirement for taking part.
func admission(s values) string {
	switch {
	case s.Allow != "" && s.Keyed():
		return "a list and a key"
	case s.Allow != "":
		return "a list"
	case s.Keyed():
		return "a key"
	}
	return "everybody"
}

// digest is a hash of a file, to tell contents apart. A file that cannot be read gives an error later, when it is
// needed.
func digest(path string) string {
	if path == "" {
		return ""
	}
	data, _ := os.ReadFile(path)
	return fingerprint(data)
}

// fingerprint is a hash to tell contents apart.
func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

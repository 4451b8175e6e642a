package describe

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

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// field is a setting that the members of a run have in common.
type field struct {
	name  string
	flags []string // that say what it is
	local bool     // members may differ
	table bool     // it is of data sets that are tables, and unknown where it is empty or too long
	value func(settings.Settings) string
	// take sets it as the run has it; nil where only the one who has it can.
	take func(s *settings.Settings, value string) error
}

// text is a field that is one flag's text.
func text(flag string, local bool, of func(*settings.Settings) *string) field {
	return field{
		name: flag, flags: []string{flag}, local: local,
		value: func(s settings.Settings) string { return *of(&s) },
		take:  func(s *settings.Settings, value string) error { *of(s) = value; return nil },
	}
}

// number is a field that is one flag's number.
func number[N any](flag string, local bool, value func(settings.Settings) N, parse func(string) (N, error), take func(*settings.Settings, N)) field {
	return field{
		name: flag, flags: []string{flag}, local: local,
		value: func(s settings.Settings) string { return fmt.Sprint(value(s)) },
		take: func(s *settings.Settings, text string) error {
			n, err := parse(text)
			if err == nil {
				take(s, n)
			}
			return err
		},
	}
}

// size is a field that is one of a gpt's sizes.
func size(flag string, of func(*settings.Settings) *int) field {
	return number(flag, false, func(s settings.Settings) int { return *of(&s) }, strconv.Atoi, func(s *settings.Settings, n int) { *of(s) = n })
}

// longestWait bounds the waits that are taken over: a member could have this peer wait for ever.
const longestWait = 24 * time.Hour

// wait is a field that is one flag's time to wait.
func wait(flag string, of func(*settings.Settings) *time.Duration) field {
	return number(flag, true, func(s settings.Settings) time.Duration { return *of(&s) }, time.ParseDuration,
		func(s *settings.Settings, d time.Duration) { *of(s) = min(d, longestWait) })
}

func decimal(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// fields are all of them. What models or work suffer from is refused; the rest is a peer's
// own to choose.
func fields() []field {
	return append(tableFields(), []field{
		text("dataset", false, func(s *settings.Settings) *string { return &s.Dataset }),
		text("model", false, func(s *settings.Settings) *string { return &s.Model }),
		size("layers", func(s *settings.Settings) *int { return &s.Sizes.Layers }),
		size("width", func(s *settings.Settings) *int { return &s.Sizes.Width }),
		size("heads", func(s *settings.Settings) *int { return &s.Sizes.Heads }),
		size("context", func(s *settings.Settings) *int { return &s.Sizes.Context }),
		{name: "work", flags: []string{"steps", "epochs"}, value: work, take: takeWork},
		ofData("size", func(s *settings.Settings) *string { return &s.Size }),
		ofData("normalize", func(s *settings.Settings) *string { return &s.Normalize }),
		text("optimizer", false, func(s *settings.Settings) *string { return &s.Optimizer }),
		number("lr", false, settings.Settings.Rate, decimal, func(s *settings.Settings, n float64) { s.LR = n }),
		text("schedule", false, func(s *settings.Settings) *string { return &s.Schedule }),
		number("warmup", false, func(s settings.Settings) float64 { return s.Warmup }, decimal, func(s *settings.Settings, n float64) { s.Warmup = n }),
		number("lr-floor", false, func(s settings.Settings) float64 { return s.LRFloor }, decimal, func(s *settings.Settings, n float64) { s.LRFloor = n }),
		number("weight-decay", false, func(s settings.Settings) float64 { return s.WeightDecay }, decimal, func(s *settings.Settings, n float64) { s.WeightDecay = n }),
		number("clip", false, func(s settings.Settings) float64 { return s.Clip }, decimal, func(s *settings.Settings, n float64) { s.Clip = n }),
		number("beta2", false, settings.Settings.OtherBeta2, decimal, func(s *settings.Settings, n float64) { s.Beta2 = n }),
		text("strategy", false, func(s *settings.Settings) *string { return &s.Strategy }),
		number("seed", false, func(s settings.Settings) uint64 { return s.Seed },
			func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }, func(s *settings.Settings, n uint64) { s.Seed = n }),
		text("final", false, func(s *settings.Settings) *string { return &s.Final }),
		text("final-weights", true, func(s *settings.Settings) *string { return &s.FinalWeights }),
		wait("final-wait", func(s *settings.Settings) *time.Duration { return &s.FinalWait }),
		number("min-peers", true, func(s settings.Settings) int { return s.MinPeers }, strconv.Atoi, func(s *settings.Settings, n int) { s.MinPeers = n }),
		wait("min-peers-wait", func(s *settings.Settings) *time.Duration { return &s.MinPeersWait }),
		text("operator", false, func(s *settings.Settings) *string { return &s.Operator }),
		number("batch", true, func(s settings.Settings) int { return s.Batch }, strconv.Atoi, func(s *settings.Settings, n int) { s.Batch = n }),
		text("every", true, func(s *settings.Settings) *string { return &s.Every }),
		text("codec", true, func(s *settings.Settings) *string { return &s.Codec }),
		text("quantized", true, func(s *settings.Settings) *string { return &s.Quantized }),
		text("augment", true, func(s *settings.Settings) *string { return &s.Augment }),
		{name: "initial values", flags: []string{"init"}, local: true, value: initial},
		{name: "codec policy", flags: []string{"policy"}, local: true, value: func(s settings.Settings) string { return digest(s.Policy) }},
		{name: "admission", flags: []string{"allow", "run-key"}, local: true, value: admission},
	}...)
}

// fieldOf is the field of a name.
func fieldOf(name string) (field, bool) {
	all := fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return all[i], true
}

// tableFields are those of data sets that are tables. Rows that leave their peers (--share-rows) are
// none of them: that is never taken over.
func tableFields() []field {
	fields := []field{text("preparation", false, func(s *settings.Settings) *string { return &s.Preparation })}
	for _, flag := range settings.SharedByTables() {
		fields = append(fields, field{
			name: flag, flags: []string{flag},
			value: func(s settings.Settings) string { return s.Table.Shared()[flag] },
			take:  func(s *settings.Settings, value string) error { return s.Table.Set(flag, value) },
		})
	}
	for i := range fields {
		fields[i].table = true
	}
	return fields
}

// work is how much there is to do.
func work(s settings.Settings) string {
	if s.Steps > 0 {
		return fmt.Sprintf("%d steps", s.Steps)
	}
	return fmt.Sprintf("%v epochs", s.Passes())
}

func takeWork(s *settings.Settings, value string) error {
	amount, unit, _ := strings.Cut(value, " ")
	var err error
	switch unit {
	case "steps":
		s.Steps, err = strconv.ParseUint(amount, 10, 64)
	case "epochs":
		s.Steps = 0
		s.Epochs, err = decimal(amount)
	default:
		err = fmt.Errorf("no number of steps or epochs")
	}
	return err
}

// itsOwn is what comes with a data set.
const itsOwn = "the data set's own"

// ofData is a field that is one flag's text, or comes with the data set.
func ofData(flag string, of func(*settings.Settings) *string) field {
	f := text(flag, false, of)
	f.value = func(s settings.Settings) string { return cmp.Or(*of(&s), itsOwn) }
	f.take = func(s *settings.Settings, value string) error {
		if *of(s) = value; value == itsOwn {
			*of(s) = ""
		}
		return nil
	}
	return f
}

// initial is where the model begins.
func initial(s settings.Settings) string {
	if s.Init == "" {
		return "of the seed"
	}
	return digest(s.Init)
}

// admission is what it takes to take part.
func admission(s settings.Settings) string {
	switch {
	case s.Allow != "" && s.RunKey != "":
		return "a list and a key"
	case s.Allow != "":
		return "a list"
	case s.RunKey != "":
		return "a key"
	}
	return "everybody"
}

// digest tells the contents of files apart. One that cannot be read is found out by whoever
// needs it.
func digest(path string) string {
	if path == "" {
		return ""
	}
	data, _ := os.ReadFile(path)
	return fingerprint(data)
}

// fingerprint tells contents apart.
func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

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
	flags []string // that say what it is
	local bool     // members may differ
	table bool     // it is of data sets that are tables, and unknown where it is empty or too long
	value func(values) string
	// take sets it as the run has it; nil where only the one who has it can.
	take func(s values, value string) error
}

// values are settings, and the flags that read and set them.
type values struct {
	*settings.Settings
	flags *pflag.FlagSet
}

// flag is a field that is one flag, as it is written.
func flag(name string, local bool) field {
	return field{
		name: name, flags: []string{name}, local: local,
		value: func(s values) string { return s.flags.Lookup(name).Value.String() },
		take:  func(s values, value string) error { return s.flags.Lookup(name).Value.Set(value) },
	}
}

// number is a flag whose value follows from other settings where it is 0.
func number(name string, of func(settings.Settings) float64) field {
	f := flag(name, false)
	f.value = func(s values) string { return fmt.Sprint(of(*s.Settings)) }
	return f
}

// longestWait bounds the waits that are taken over: a member could have this peer wait for ever.
const longestWait = 24 * time.Hour

// wait is a flag that is a time to wait.
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

// fields are all of them. What models or work suffer from is refused; the rest is a peer's
// own to choose.
func fields() []field {
	return append(tableFields(), []field{
		flag("dataset", false), flag("model", false), flag("layers", false), flag("width", false), flag("heads", false), flag("context", false),
		{name: "work", flags: []string{"steps", "epochs"}, value: work, take: takeWork},
		ofData("size"), ofData("normalize"), flag("optimizer", false), number("lr", settings.Settings.Rate),
		flag("schedule", false), flag("warmup", false), flag("lr-floor", false), flag("weight-decay", false), flag("clip", false),
		number("beta2", settings.Settings.OtherBeta2),
		flag("strategy", false), flag("seed", false), flag("final", false), flag("final-weights", true),
		wait("final-wait", func(s *settings.Settings) *time.Duration { return &s.FinalWait }),
		flag("min-peers", true),
		wait("min-peers-wait", func(s *settings.Settings) *time.Duration { return &s.MinPeersWait }),
		flag("operator", false), flag("batch", true), flag("every", true), flag("codec", true), flag("quantized", true), flag("augment", true),
		{name: "initial values", flags: []string{"init"}, local: true, value: initial},
		{name: "codec policy", flags: []string{"policy"}, local: true, value: func(s values) string { return digest(s.Policy) }},
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

// work is how much there is to do.
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

// itsOwn is what comes with a data set.
const itsOwn = "the data set's own"

// ofData is a flag without which its value comes with the data set.
func ofData(name string) field {
	own := flag(name, false)
	f := own
	f.value = func(s values) string { return cmp.Or(own.value(s), itsOwn) }
	f.take = func(s values, value string) error { return own.take(s, strings.TrimSuffix(value, itsOwn)) }
	return f
}

// initial is where the model begins.
func initial(s values) string {
	if s.Init == "" {
		return "of the seed"
	}
	return digest(s.Init)
}

// admission is what it takes to take part.
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

// Package rundescription makes of settings the description of a run, by which its members see
// that they train the same model by the same rules, and of the description of a run the
// settings of one that joins it.
package rundescription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// heldOut is the field of the data that models are evaluated on, which tells data sets of one
// name apart.
const heldOut = "held-out data"

// Of describes the run of these settings, and of these data once they are loaded.
func Of(s settings.Settings, data *dataset.Data) description.Description {
	var all []description.Field
	if data != nil {
		if norm := data.Measured(); norm != nil {
			s.Normalize = dataset.FormatNorm(norm)
		}
		if s.Dataset == dataset.Images {
			s.Size = fmt.Sprintf("%dx%d", data.Shape().Width, data.Shape().Height)
		}
		if !s.IsTable() { // rows are held out for oneself
			// Pictures of one's own may be.
			all = append(all, description.Field{Name: heldOut, Value: fmt.Sprintf("%x", data.HeldOut.Fingerprint()), Local: s.Dataset == dataset.Images})
		}
	}
	set := values{&s, s.Flags()}
	for _, f := range fields() {
		if value := f.value(set); !f.table || s.IsTable() && value != "" && len(value) <= description.MaxValue {
			all = append(all, description.Field{Name: f.name, Value: value, Local: f.local})
		}
	}
	return description.Of(s.Run, all...)
}

// sizes are the fields that decide how much memory a peer takes.
var sizes = []string{"dataset", "model", "layers", "width", "heads", "context", "size", "batch"}

// Join asks the addresses to join what the run is. What nobody has set is set as it is
// there; what was set otherwise, and would harm models or work, is a fault of usage. Where
// no member answers, or none says what the run is, the settings stay as they are. What was
// taken over is returned, in the words of flags.
func Join(ctx context.Context, s *settings.Settings, from cli.Origins, log *zap.Logger) (taken []string, err error) {
	_, tr, err := s.Outside(log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	taken, differences, err := Compare(ctx, tr, s, from, log)
	if err != nil {
		return taken, err
	}
	return taken, Contradiction(from, differences)
}

// Compare is Join that asks by a transport, and returns the differences.
func Compare(ctx context.Context, tr transport.Transport, s *settings.Settings, from cli.Origins, log *zap.Logger) (taken []string, differences []description.Difference, err error) {
	admission, err := s.Admission(log)
	if err != nil {
		return nil, nil, cli.Config(err)
	}
	found, _, err := descriptionIn(ask(ctx, admission, tr, *s, log), *s, log)
	if err != nil || len(found.Description.Fields) == 0 {
		return nil, nil, err
	}
	return takeOver(s, from, found)
}

// takeOver sets what nobody has set as a member has said that the run has it, and tells what differs.
func takeOver(s *settings.Settings, from cli.Origins, found peer.Inquiry) (taken []string, differences []description.Difference, err error) {
	s.Founder, s.Described = string(found.Signed.Signer), found.Signed
	if taken, err = adopt(s, from, found.Description); err != nil {
		return taken, nil, err
	}
	return taken, Of(*s, nil).Differences(found.Description), nil
}

// adopt sets what nobody has set as the run has it.
func adopt(s *settings.Settings, from cli.Origins, there description.Description) (taken []string, err error) {
	here := values{s, s.Flags()}
	for _, f := range fields() {
		value, ok := there.Value(f.name)
		set := len(chosen(from, f.flags)) > 0
		if f.value(here) == settings.OfFlock { // what it is was to be found out
			set = false
		}
		if !ok || f.take == nil || set {
			continue
		}
		if value == f.value(here) {
			continue
		}
		if err := f.take(here, value); err != nil {
			return taken, fmt.Errorf("taking over the run's %s, %q: %w", f.name, value, err)
		}
		taken = append(taken, f.name+" "+f.value(here))
		s.TakenSize = s.TakenSize || slices.Contains(sizes, f.name)
	}
	return taken, nil
}

// Contradiction is the error of settings that differ from the run's so that models or work would
// suffer; nil if none do. It is a fault of usage if the user has set one of them.
func Contradiction(from cli.Origins, differences []description.Difference) error {
	var faults []error
	wrap := func(err error) error { return err }
	harmful, _ := description.Split(differences)
	for _, d := range harmful {
		flags, remedy := []string{"data"}, "give the data that the others have, with --data"
		f, known := fieldOf(d.Field)
		if known {
			flags, remedy = f.flags, "join with another value"
		}
		if flags = chosen(from, flags); len(flags) > 0 {
			wrap = cli.Usage
		}
		if known && len(flags) > 0 {
			remedy = "leave out " + strings.Join(flags, " and ") + " to take over the run's"
		}
		faults = append(faults, fmt.Errorf("%s: %s", d, remedy))
	}
	if len(faults) == 0 {
		return nil
	}
	return wrap(fmt.Errorf("this run is another than that of --join:\n%w", errors.Join(faults...)))
}

// chosen are those of flags that the user has given, as he has.
func chosen(from cli.Origins, flags []string) (names []string) {
	for _, flag := range flags {
		if from.Source(flag) != cli.FromDefault {
			names = append(names, from.Name(flag))
		}
	}
	return names
}

// Retake takes over what the run is from a member's word, on the first hello, that this peer is
// set up otherwise: one that has begun alone, on settings that nobody gave, is to begin anew.
// It returns what was taken; nothing, and why, where the user or nobody can change it.
func Retake(s *settings.Settings, from cli.Origins, err error) (taken []string, fault error) {
	mismatch, ok := errors.AsType[*description.MismatchError](err)
	if !ok {
		return nil, err
	}
	changed := *s
	changed.Described = description.Signed{}
	var there []description.Field
	for _, d := range mismatch.Differences {
		if _, known := fieldOf(d.Field); known { // what is held out follows from the data set: it is seen then whether it still differs
			there = append(there, description.Field{Name: d.Field, Value: d.There})
		}
	}
	taken, fault = adopt(&changed, from, description.Of(s.Run, there...))
	if fault != nil || len(taken) == 0 || len(taken) < len(there) {
		return nil, Contradiction(from, mismatch.Differences)
	}
	*s = changed
	return taken, nil
}

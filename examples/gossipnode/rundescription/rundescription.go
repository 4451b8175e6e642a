// Package rundescription converts settings to the description of a run, by which members check that they train the
// same model by the same rules, and a description to the settings of a peer that joins.
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

// heldOut is the field with a hash of the held-out data, which tells data sets of one name apart.
const heldOut = "held-out data"

// Of describes the run of these settings, and of the data if they are loaded.
func Of(s settings.Settings, data *dataset.Data) description.Description {
	var all []description.Field
	if data != nil {
		if norm := data.Measured(); norm != nil {
			s.Normalize = dataset.FormatNorm(norm)
		}
		if s.Dataset == dataset.Images {
			s.Size = fmt.Sprintf("%dx%d", data.Shape().Width, data.Shape().Height)
		}
		if !s.IsTable() && !s.Begins() { // each member holds out its own rows
			// A user's own pictures may differ.
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

// sizes are the fields that decide a peer's memory.
var sizes = []string{"dataset", "model", "layers", "width", "heads", "context", "size", "batch"}

// Join asks the addresses to join for the description of the run. It sets the settings that the user has not given to
// the run's. A given setting that differs and would harm models or the work is a usage error. If no member answers
// with a description, the settings do not change. It returns the settings taken over, as flags.
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

// Compare is Join with a given transport, and also returns the differences.
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

// takeOver sets the settings that the user has not given to those of a description, and returns the differences.
func takeOver(s *settings.Settings, from cli.Origins, found peer.Inquiry) (taken []string, differences []description.Difference, err error) {
	s.Founder, s.Described = string(found.Signed.Signer), found.Signed
	if taken, err = adopt(s, from, found.Description); err != nil {
		return taken, nil, err
	}
	return taken, Of(*s, nil).Differences(found.Description), nil
}

// adopt sets the settings that the user has not given to the run's.
func adopt(s *settings.Settings, from cli.Origins, there description.Description) (taken []string, err error) {
	here := values{s, s.Flags()}
	for _, f := range fields() {
		value, ok := there.Value(f.name)
		set := len(chosen(from, f.flags)) > 0
		if f.value(here) == settings.OfFlock { // only a placeholder until the run is known
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

// Contradiction returns an error if settings differ from the run's so that models or the work would suffer; otherwise
// nil. It is a usage error if the user has given one of these settings.
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
	return wrap(fmt.Errorf("this run differs from that of --join:\n%w", errors.Join(faults...)))
}

// chosen returns those of flags that the user has given, with their values.
func chosen(from cli.Origins, flags []string) (names []string) {
	for _, flag := range flags {
		if from.Source(flag) != cli.FromDefault {
			names = append(names, from.Name(flag))
		}
	}
	return names
}

// Retake takes over the settings of the run after a member has refused this peer for its settings, at the first
// hello: a peer that began alone with default settings starts anew. It returns the settings taken over, or a fault if
// the user has given them or nobody can change them.
func Retake(s *settings.Settings, from cli.Origins, err error) (taken []string, fault error) {
	mismatch, ok := errors.AsType[*description.MismatchError](err)
	if !ok {
		return nil, err
	}
	changed := *s
	changed.Described = description.Signed{}
	var there []description.Field
	for _, d := range mismatch.Differences {
		if _, known := fieldOf(d.Field); known { // held-out data follow from the data set, and are compared again later
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

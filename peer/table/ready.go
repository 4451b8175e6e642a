package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
)

// Errors that all members of a flock return alike, except the member whose rows are at fault,
// which returns the cause.
var (
	// ErrUnlike: members have different columns, classes or settings.
	ErrUnlike = errors.New("members differ in columns, classes or settings; give all the same")
	// ErrMember: the rows of another member cannot be used; that member's own error says why.
	ErrMember = errors.New("another member's rows cannot be used, its own error says why")
)

// Ready begins a task of all members. A member that cannot go on because of its own rows or
// settings passes its error as local; otherwise the others would wait for its sums. All members
// compare the values alike, by their JSON. Ready is one Max of three numbers. It returns local if
// that is not nil, else ErrMember, ErrUnlike or the flock's error.
func Ready(ctx context.Context, flock Flock, name string, local error, alike ...any) error {
	content, err := json.Marshal(alike)
	if err != nil && local == nil {
		local = fmt.Errorf("settings: %w", err)
	}
	hash := fnv.New64a()
	hash.Write(content)
	code := float64(hash.Sum64() >> 11) // 53 bits: a float64 has them all
	failed := 0.0
	if local != nil {
		failed = 1
	}
	most, _, err := Careful(flock).Max(ctx, name, []float64{code, -code, failed})
	switch {
	case local != nil:
		return local
	case err != nil:
		return fmt.Errorf("agreeing on %s: %w", name, err)
	case most[2] != 0:
		return ErrMember
	case most[0] != -most[1]:
		return ErrUnlike
	}
	return nil
}

// AgreeSettings checks that all members have the same settings; if not, all get the same ErrUnlike, which names a
// setting that differs.
func AgreeSettings(ctx context.Context, flock Flock, name string, settings map[string]string) error {
	all, err := GatherJSON(ctx, Careful(flock), name, settings)
	if err != nil {
		return fmt.Errorf("comparing settings: %w", err)
	}
	for i, theirs := range all {
		either := map[string]string{} // what only one of them has differs, too
		maps.Copy(either, theirs)
		maps.Copy(either, all[0])
		for _, key := range slices.Sorted(maps.Keys(either)) {
			_, here := all[0][key]
			if _, there := theirs[key]; here != there || all[0][key] != theirs[key] {
				return fmt.Errorf("%s is %q at one member and %q at another (%d of %d): %w", key, all[0][key], theirs[key], i+1, len(all), ErrUnlike)
			}
		}
	}
	return nil
}

package table

import (
	"maps"
	"reflect"
	"slices"
)

// Kinds are the types that a file may hold, each under a name that stays as it is in later releases; what makes
// one gives a pointer to read into. A service adds types of its own With a name, and hands the Kinds to what
// writes and reads its files.
type Kinds[T any] map[string]func() T

// With is these kinds and one more.
func (k Kinds[T]) With(name string, make func() T) Kinds[T] {
	all := maps.Clone(k)
	if all == nil {
		all = Kinds[T]{}
	}
	all[name] = make
	return all
}

// Names are those of all kinds, sorted.
func (k Kinds[T]) Names() []string { return slices.Sorted(maps.Keys(k)) }

// NameOf is the kind of a value, or of what it points to; "" if it is none of these.
func (k Kinds[T]) NameOf(value T) string {
	for _, name := range k.Names() {
		if typeOf(k[name]()) == typeOf(value) {
			return name
		}
	}
	return ""
}

func typeOf(value any) reflect.Type {
	t := reflect.TypeOf(value)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

package table

import (
	"maps"
	"reflect"
	"slices"
)

// Kinds are the types that a file may hold, each with a name that never changes; the function of a kind returns
// a pointer to read into. A service adds its own types with With, and passes the Kinds to the functions that
// write and read its files.
type Kinds[T any] map[string]func() T

// With is these kinds and one more.
func (k Kinds[T]) With(name string, make func() T) Kinds[T] {
	all := Kinds[T]{}
	maps.Copy(all, k)
	all[name] = make
	return all
}

// Or is these kinds, or the usual ones if these are nil.
func (k Kinds[T]) Or(usual func() Kinds[T]) Kinds[T] {
	if k == nil {
		return usual()
	}
	return k
}

// Names are those of all kinds, sorted.
func (k Kinds[T]) Names() []string { return slices.Sorted(maps.Keys(k)) }

// NameOf is the kind of a value, or of the value that it points to; "" if there is none.
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

package bridge

import (
	"slices"

	"github.com/seed-97356399/murmuration/tensor"
)

// entry is a range of the layout in hello.
type entry struct {
	Name    string `json:"name"`
	Shape   []int  `json:"shape"`
	Kind    string `json:"kind"`
	Sharing string `json:"sharing"`
	Type    string `json:"dtype"`
}

// dtype is the type to which the trainer converts values.
type dtype string

const (
	float32Type  dtype = "f32"
	bfloat16Type dtype = "bf16"
	float16Type  dtype = "fp16"
)

// The values that an entry's fields may have, the default first.
var (
	kinds    = []tensor.Kind{tensor.Dense, tensor.Conv, tensor.Norm, tensor.Bias, tensor.Embedding, tensor.Statistic}
	sharings = []tensor.Sharing{tensor.Shared, tensor.Local, tensor.Frozen}
	dtypes   = []dtype{float32Type, bfloat16Type, float16Type}
)

// String returns the name in hello.
func (t dtype) String() string { return string(t) }

// layoutOf lays out a hello's ranges, and tells which are to be rounded.
func layoutOf(entries []entry) (*tensor.Layout, rounding, error) {
	const remedy = "give every range a name of its own and a shape; see docs/BRIDGE.md for kinds, sharing and dtypes"
	specs := make([]tensor.Spec, len(entries))
	types := make([]dtype, len(entries))
	for i, e := range entries {
		kind, ok := named(kinds, e.Kind)
		if !ok {
			return nil, rounding{}, refuse(CodeLayout, remedy, "range %d (%q) has kind %q: want one of %v", i, e.Name, e.Kind, kinds)
		}
		sharing, ok := named(sharings, e.Sharing)
		if !ok {
			return nil, rounding{}, refuse(CodeLayout, remedy, "range %d (%q) has sharing %q: want one of %v", i, e.Name, e.Sharing, sharings)
		}
		if types[i], ok = named(dtypes, e.Type); !ok {
			return nil, rounding{}, refuse(CodeLayout, "convert it to float32, or leave it out of the layout",
				"range %d (%q) has dtype %q: want one of %v", i, e.Name, e.Type, dtypes)
		}
		specs[i] = tensor.Spec{Name: e.Name, Shape: e.Shape, Kind: kind, Sharing: sharing}
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return nil, rounding{}, refuse(CodeLayout, remedy, "%v", err)
	}
	if !slices.ContainsFunc(specs, func(s tensor.Spec) bool { return s.Sharing == tensor.Shared }) {
		return nil, rounding{}, refuse(CodeLayout, "share the trained ranges", "no range is shared, so there is nothing to exchange")
	}
	return layout, roundingOf(layout, types), nil
}

// named finds the value with a name; an empty name stands for the first.
func named[T interface{ String() string }](all []T, name string) (T, bool) {
	if name == "" {
		return all[0], true
	}
	i := slices.IndexFunc(all, func(one T) bool { return one.String() == name })
	if i < 0 {
		return all[0], false
	}
	return all[i], true
}

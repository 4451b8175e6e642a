package flocktest_test

import (
	"encoding/json"
	"maps"
	"slices"
)

// mutated is a JSON text with each of its values in turn replaced by others: what a file may hold that has
// a good checksum.
func mutated(data []byte) (all [][]byte, err error) {
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	others := []any{nil, -1.0, 0.0, 1.0, 3.5, 2e9, 1e300, "", "x", []any{}, []any{1.0, 1.0, 1.0}, map[string]any{}, true}
	var walk func(value any, put func(any))
	walk = func(value any, put func(any)) {
		for _, other := range others {
			put(other)
			text, _ := json.Marshal(whole)
			all = append(all, text)
		}
		put(value)
		switch value := value.(type) {
		case []any:
			for i, v := range value {
				walk(v, func(other any) { value[i] = other })
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				walk(value[key], func(other any) { value[key] = other })
			}
		}
	}
	walk(whole, func(other any) { whole = other })
	return all, nil
}

package search

import (
	"encoding/json"
	"strconv"
	"testing"
)

func number(t *testing.T, v Value) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (s *Setting) parse(text string) error { return json.Unmarshal([]byte(text), s) }

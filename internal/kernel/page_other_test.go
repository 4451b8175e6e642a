//go:build !linux

package kernel

import "testing"

func beforePage(t *testing.T, n int) []float32 { return make([]float32, n) }

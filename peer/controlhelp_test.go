package peer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/tensor"
)

type vector = tensor.Vector

func equal(a, b []uint64) bool { return slices.Equal(a, b) }

func within(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

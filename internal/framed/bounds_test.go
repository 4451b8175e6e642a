package framed_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestBoundsOfRunNamesAgree: a name that a record of a member may carry fits into frames.
func TestBoundsOfRunNamesAgree(t *testing.T) {
	if transport.MaxRunName != wire.MaxRunName {
		t.Errorf("a run's name may have %d bytes in records and %d in frames", transport.MaxRunName, wire.MaxRunName)
	}
}

package peer_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestParamsWithoutALayoutAreRefused: the zero Params is a mistake that Start names, as none at all is.
func TestParamsWithoutALayoutAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := inMemory(t, memnet.New(memnet.Config{}), "only", "digits")
		p, err := peer.Start(t.Context(), peer.Config{Run: "digits", Params: &tensor.Params{}, Network: network})
		if !errors.Is(err, peer.ErrConfig) || !strings.Contains(err.Error(), "Params") || !strings.Contains(err.Error(), "tensor.NewParams") {
			t.Errorf("%v, %v", p, err)
		}
	})
}

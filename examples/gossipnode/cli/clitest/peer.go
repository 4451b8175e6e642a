package clitest

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/tensor"
)

// Peer starts a real peer of the default run on loopback and returns its address. says is the peer's description of
// the run.
func Peer(t *testing.T, admits peer.Admission, says ...description.Field) (address string) {
	t.Helper()
	model, err := nets.ByName("mlp", dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.Start(t.Context(), peer.Config{
		Run:     "murmuration",
		Params:  tensor.NewParams(model.Layout()),
		Network: peer.Network{Description: description.Of("", says...).Fields, Listen: []string{"127.0.0.1:0"}, Admission: admits},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.JoinAddresses()[0]
}

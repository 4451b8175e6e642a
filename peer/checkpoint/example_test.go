package checkpoint_test

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

// train makes some steps of a peer whose state is kept in a folder, from where it was.
func train(folder checkpoint.Folder, steps int) error {
	lock, err := folder.Make(zap.NewNop()) // against a second process
	if err != nil {
		return err
	}
	defer lock.Close()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{3}})
	if err != nil {
		return err
	}
	params := tensor.NewParams(layout)
	taken, refused, err := folder.Load(params)
	if err != nil {
		return err
	}
	config := peer.Config{Run: folder.Run, Params: params, Network: peer.Network{Listen: []string{"127.0.0.1:0"}}}
	if taken != nil {
		config.Training.Checkpoint = taken.Checkpoint
	}
	ctx := context.Background()
	p, err := peer.Start(ctx, config)
	if err != nil {
		return err
	}
	keeper := checkpoint.NewKeeper(checkpoint.KeeperConfig{Into: folder, Refused: refused, Peer: p, Layout: layout, Log: zap.NewNop()})
	keeper.Start()
	fmt.Println("behind:", p.Stats().Steps)
	for range steps {
		if err := p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return peer.Result{Samples: 1}, nil }); err != nil {
			return err
		}
	}
	keeper.End()
	if err := p.Close(); err != nil {
		return err
	}
	return keeper.Last(p.Stats())
}

// A service that is started again goes on where it was.
func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder := checkpoint.Folder{Dir: dir, Run: "digits", Keep: 3}
	for range 2 {
		if err := train(folder, 5); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// behind: 0
	// behind: 5
}

// Embed is a service with a model of its own: it learns to read digits from images that it
// alone has, together with whoever runs it too, and tells over HTTP what it reads.
//
//	go run ./examples/embed localhost:8000              # the first; it logs its addresses
//	go run ./examples/embed localhost:8001 ADDRESS…     # each further one
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", append(os.Args, "localhost:8000")[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Println(serve(ctx, listener, os.Args[min(2, len(os.Args)):], 2000))
}

// serve learns until all have taken steps gradient steps on average, and answers until ctx ends.
func serve(ctx context.Context, listener net.Listener, seeds []string, steps uint64) error {
	data, err := dataset.Load(ctx, dataset.Config{Name: "glyphs", PeerSeed: rand.Uint64()})
	if err != nil {
		return err
	}
	batches, err := dataset.NewSampler(data.Train, 32, rand.Uint64())
	if err != nil {
		return err
	}
	var batch dataset.Batch
	// README.md shows these lines.
	model, err := nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).Build(784)
	if err != nil {
		return err
	}
	params, work := model.Init(1), peer.Work{StepsPerPeer: steps} // the same at every peer
	p, err := peer.Start(ctx, peer.Config{Run: "digits", Params: params, Join: seeds, Training: peer.Training{Work: work}, Network: peer.Network{Log: zap.Must(zap.NewDevelopment())}})
	if err != nil {
		return err
	}
	defer p.Close()
	log.Println("others join at", p.JoinAddresses())
	go http.Serve(listener, reader(p, model)) // answers with what has been learned so far
	trainer := model.Trainer(32, nn.CrossEntropy())
	for err == nil {
		err = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
			err := batches.Next(&batch)
			return peer.Result{Loss: trainer.Gradient(x, grad, batch.X, nn.Labels(nil, batch.Labels)), Samples: 32}, err
		})
	}
	// Until here.
	if errors.Is(err, peer.ErrRunOver) {
		<-ctx.Done()
	}
	return errors.Join(err, listener.Close())
}

// reader answers 784 grey levels, a JSON array, with the log-odds of the ten digits.
func reader(p *peer.Peer, model *nn.Model) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		image, snapshot, digits := tensor.Vector{}, make(tensor.Vector, model.Layout().Len()), make(tensor.Vector, 10)
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&image); err != nil || len(image) != 784 {
			http.Error(w, "want a JSON array of 784 numbers", http.StatusBadRequest)
		} else if _, err := p.Snapshot(snapshot, 0); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		} else {
			model.Predict(snapshot, digits, image)
			json.NewEncoder(w).Encode(digits)
		}
	}
}

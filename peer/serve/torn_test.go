package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/tensor"
)

var predictions = flag.Int("predictions", 20_000, "predictions of TestNoTornPrediction; a million take half a minute")

// weights is a model whose parameters are all k after k steps. It answers the least and the largest of them.
type weights struct {
	vector  tensor.Vector
	version uint64
}

func (w *weights) About() serve.About {
	return serve.About{Kind: "weights", Version: fmt.Sprint(w.version), Width: 1, Outputs: 2}
}

func (w *weights) Predict(dst []float64, rows serve.Rows) ([]float64, error) {
	for range rows.Len {
		dst = append(dst, float64(slices.Min(w.vector)), float64(slices.Max(w.vector)))
	}
	return dst, nil
}

// alone starts a peer that trains alone, in memory, a model of zeros.
func alone(t *testing.T, parameters, sliceLen int) *peer.Peer {
	t.Helper()
	network := memnet.New(memnet.Config{})
	tr, err := network.Transport("a")
	if err != nil {
		t.Fatal(err)
	}
	members, err := network.Membership(tr, "ones")
	if err != nil {
		t.Fatal(err)
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{parameters}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.Start(t.Context(), peer.Config{
		Run: "ones", Params: tensor.NewParams(layout), Network: peer.Network{Transport: tr, Membership: members},
		Training: peer.Training{Exchange: peer.Exchange{SliceLen: sliceLen}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		_ = tr.Close()
	})
	return p
}

// TestNoTornPrediction: while a peer takes steps of one as fast as it can, and the model that is served is swapped for
// each snapshot, all rows of a prediction are of the same parameters, all of one step; and no later prediction of a
// client is of an earlier one.
func TestNoTornPrediction(t *testing.T) {
	const parameters, clients, least = 512, 4, 20 // least models that clients see
	p, models := alone(t, parameters, 64), new(serve.Holder)
	ctx, stop := context.WithCancel(t.Context())
	var running, asking sync.WaitGroup
	running.Go(func() {
		ones := make(tensor.Vector, parameters)
		for i := range ones {
			ones[i] = 1
		}
		for p.Apply(ctx, ones, peer.Result{}) == nil {
		}
	})
	var swaps int
	running.Go(func() {
		version := uint64(0)
		for ctx.Err() == nil {
			w := &weights{vector: make(tensor.Vector, parameters)}
			var err error
			if w.version, err = p.Snapshot(w.vector, version); err != nil {
				t.Error(err)
				return
			}
			if w.version != version {
				version = w.version
				models.Swap(w, 0)
				swaps++
			}
			time.Sleep(time.Microsecond) // lets others run; nothing depends on it
		}
	})
	for models.Served() == nil {
		time.Sleep(time.Microsecond)
	}
	handler := serve.Handler(models, "")
	var made, versions atomic.Int64
	for n := range clients {
		asking.Go(func() {
			random, last := rand.New(rand.NewPCG(1, uint64(n))), -1.0
			for made.Load() < int64(*predictions) || versions.Load() < least {
				rows := 1 + random.IntN(16)
				w := httptest.NewRecorder()
				body := append(bytes.Repeat([]byte("[0],"), rows), "[0]]"...)
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/predict", bytes.NewReader(append([]byte("["), body...))))
				var said struct{ Predictions []struct{ Values []float64 } }
				if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || len(said.Predictions) != rows+1 {
					t.Errorf("%d %s: %v", w.Code, w.Body, err)
					return
				}
				first := said.Predictions[0].Values[0]
				for _, one := range said.Predictions {
					if one.Values[0] != first || one.Values[1] != first {
						t.Errorf("torn: %v in a request that begins with %v", one.Values, first)
						return
					}
				}
				if first < last {
					t.Errorf("of step %v after %v", first, last)
					return
				}
				if first != last {
					versions.Add(1)
				}
				last = first
				made.Add(int64(rows) + 1)
			}
		})
	}
	asking.Wait()
	stop()
	running.Wait()
	t.Logf("%d predictions of %d models that clients saw, %d swaps, %d steps", made.Load(), versions.Load(), swaps, p.Stats().Steps)
}

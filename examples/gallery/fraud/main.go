// Fraud: four payment services, each of which sees mostly one kind of fraud, fit one model of the transactions of all. No
// transaction leaves its service, and sums have masks, since the run has a key. Each service scores the next month of all.
//
//	go run ./examples/gallery/fraud [fraud.svg]
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/seed-97356399/murmuration/examples/gallery/flock"
	"github.com/seed-97356399/murmuration/examples/gallery/picture"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

const services = 4

var task = learn.Task{Plan: prepare.Plan{Target: "fraud=yes", Split: "row:9/10"}, Learner: learn.Boost{Trees: 40}}

func main() { flock.Main("fraud.svg", run) }

func run(ctx context.Context, out io.Writer, path string) error {
	var alone, together [services]float64 // AUC on the next month of all
	network := peer.Network{Run: "fraud", Admission: peer.Admission{RunKey: bytes.Repeat([]byte("secret"), 6)}}
	err := flock.Nodes(ctx, services, network, func(i int, node *peer.Node) error { // all that one service does
		rows := table.Held(month(i, 1+uint64(i), 4000))
		shared, err := task.Fit(ctx, table.Scope(node, "fraud"), rows)
		if err != nil {
			return err
		}
		own, err := task.Fit(ctx, table.Alone{}, rows)
		if err != nil {
			return err
		}
		if together[i], err = auc(shared.File); err != nil {
			return err
		}
		alone[i], err = auc(own.File)
		return err
	})
	if err != nil {
		return err
	}
	names, values := []string{"together"}, []float64{together[0]}
	for i, a := range alone {
		names, values = append(names, fmt.Sprint(i+1, " alone")), append(values, a)
	}
	fmt.Fprintf(out, "AUC on the next month of all: together %.3f at each service, alone %.3f\n", together, alone)
	return picture.Bars(path, picture.Axes{Title: "Fraud next month, at all services", Below: "boosted trees; each service has 4,000 transactions", Y: "AUC"}, names, values)
}

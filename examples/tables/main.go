// Tables is a service that has rows in a file of its own, and fits a model of the rows of all together with
// whoever runs it too. No row leaves its file.
//
//	go run ./examples/tables mine.csv 'delay>15' 3 >late.model             # the first of three; it logs its addresses
//	go run ./examples/tables theirs.csv 'delay>15' 3 ADDRESS… >late.model  # each further one
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 4 {
		log.Fatal("usage: tables FILE TARGET MEMBERS [ADDRESS…]")
	}
	members, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	if err := fit(ctx, os.Args[4:], members, os.Args[1], os.Args[2], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// fit writes the model to file, and logs its scores.
func fit(ctx context.Context, seeds []string, members int, path, target string, file io.Writer) error {
	rows, err := read.Open(ctx, []string{path}, read.Config{})
	if err != nil {
		return err
	}
	// README.md shows these lines.
	node, err := peer.Join(ctx, peer.Network{Run: "flights", Join: seeds})
	if err != nil {
		return err
	}
	defer node.Close()
	log.Println("others join at", node.JoinAddresses())
	if err := node.WaitMembers(ctx, members); err != nil {
		return err
	}
	task := learn.Task{Plan: prepare.Plan{Target: target, Split: "row:7/10"}, Learner: learn.Boost{Trees: 100}}
	fitted, err := task.Fit(ctx, table.Scope(node, "late flights"), rows)
	// Until here.
	if err != nil {
		return err
	}
	if c := fitted.Scores.Classes; c != nil {
		log.Printf("%.0f rows held out of %d members: accuracy %.3f, AUC %.3f", c.Rows, c.Peers, c.Accuracy, c.AUC)
	}
	return learn.Save(file, fitted.File)
}

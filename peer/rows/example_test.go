package rows_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/rows"
)

// texts is a data set of the application, whose rows are texts.
type texts []string

func (t texts) Rows() int { return len(t) }

func (t texts) Append(dst []byte, rows []int32) ([]byte, error) {
	for _, row := range rows {
		dst = append(append(dst, t[row]...), '\n')
	}
	return dst, nil
}

// One member holds rows, and another trains on them.
func Example() {
	network := memnet.New(memnet.Config{})
	member := func(name string, join ...string) *peer.Node {
		tr, err := network.Transport(name)
		if err != nil {
			log.Fatal(err)
		}
		membership, err := network.Membership(tr, "lines")
		if err != nil {
			log.Fatal(err)
		}
		node, err := peer.Join(context.Background(), peer.Network{Run: "lines", Join: join, Transport: tr, Membership: membership})
		if err != nil {
			log.Fatal(err)
		}
		return node
	}
	node := member("holder")
	defer node.Close()
	holder, err := rows.Hold(node, texts{"a", "b", "c", "d"}, rows.HoldConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer holder.Close()

	trainer := member("trainer", node.JoinAddresses()...)
	defer trainer.Close()
	batches, err := rows.From(trainer, rows.FromConfig{Batch: 4})
	if err != nil {
		log.Fatal(err)
	}
	batch, err := batches.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch.Rows, "rows in", len(batch.Data), "bytes")
	batches.Done() // a gradient was computed of them
	batches.Close()
	counts := holder.Counts()
	fmt.Println(counts.HandedOut, "handed out,", counts.Trained, "trained,", counts.Lost, "lost")
	// Output:
	// 4 rows in 8 bytes
	// 4 handed out, 4 trained, 0 lost
}

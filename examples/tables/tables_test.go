package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// TestTwoServicesHaveOneModel of the rows of both, which each predicts from.
func TestTwoServicesHaveOneModel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	known, err := peer.Join(ctx, peer.Network{Run: "flights", Listen: []string{"127.0.0.1:0"}}) // whose address both have
	if err != nil {
		t.Fatal(err)
	}
	defer known.Close()
	models := make([]bytes.Buffer, 2)
	var members sync.WaitGroup
	for i := range models {
		path := filepath.Join(t.TempDir(), "rows.csv")
		text := "hour,carrier,delay\n"
		for row := range 100 {
			hour := (row*7 + i) % 24
			text += fmt.Sprintf("%d,%s,%d\n", hour, []string{"UA", "DL"}[row%2], 2*hour-12+row%5)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		members.Go(func() {
			if err := fit(ctx, known.JoinAddresses()[:1], 3, path, "delay>15", &models[i]); err != nil {
				t.Error(err)
			}
		})
	}
	task := learn.Task{Plan: prepare.Plan{Target: "delay>15", Split: "row:7/10"}, Learner: learn.Boost{Trees: 100}}
	if err = known.WaitMembers(ctx, 3); err == nil {
		_, err = task.Fit(ctx, table.Scope(known, "late flights"), nil) // it has no rows
	}
	if members.Wait(); err != nil || t.Failed() {
		t.Fatal(err)
	}
	if models[0].Len() == 0 || !bytes.Equal(models[0].Bytes(), models[1].Bytes()) {
		t.Fatalf("two models, of %d and %d bytes", models[0].Len(), models[1].Len())
	}
	file, err := learn.Load(&models[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := file.Predict(nil, &table.Batch{Rows: 2, Columns: []table.Column{
		{Name: "hour", Numbers: []float64{6, 21}}, {Name: "carrier", Kind: table.Category, Codes: []int32{0, 0}, Values: []string{"UA"}},
	}})
	if err != nil || p[1] > 0.5 || p[3] < 0.5 {
		t.Errorf("late at 6: %v, at 21: %v, %v", p[1], p[3], err)
	}
}

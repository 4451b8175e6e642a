package learn_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// member is the whole of a service that learns with others from a file of its own: flock is a *peer.Peer then. It
// returns a model as a file has it, which is the same at all members.
func member(ctx context.Context, flock table.Flock, path string) (model []byte, scores learn.Scores, err error) {
	rows, err := read.Open(ctx, []string{path}, read.Config{})
	if err != nil {
		return nil, scores, err
	}
	task := learn.Task{
		Plan:    prepare.Plan{Target: "delay>15", Split: "row:7/10", Drop: []string{"flight"}},
		Usual:   prepare.Usual{Floor: 5},
		Learner: learn.Logistic{},
	}
	fitted, err := task.Fit(ctx, table.Scope(flock, "late flights"), rows)
	if err != nil {
		return nil, scores, err
	}
	var file bytes.Buffer
	err = learn.Save(&file, fitted.File)
	return file.Bytes(), fitted.Scores, err
}

// Three members with a file each have one model of all rows, of which none has seen another's.
func ExampleTask() {
	dir, err := os.MkdirTemp("", "flights")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	models := make([][]byte, 3)
	table.Together(len(models), func(flock table.Flock, i int) {
		path := filepath.Join(dir, fmt.Sprint(i, ".csv"))
		err := os.WriteFile(path, flights(i), 0o600)
		var scores learn.Scores
		if err == nil {
			models[i], scores, err = member(context.Background(), flock, path)
		}
		if err != nil {
			fmt.Println(err)
		} else if i == 0 {
			fmt.Printf("%.0f rows held out of %d members, AUC %.2f\n", scores.Classes.Rows, scores.Classes.Peers, scores.Classes.AUC)
		}
	})
	fmt.Println("the same at all:", bytes.Equal(models[0], models[1]) && bytes.Equal(models[1], models[2]))
	file, err := learn.Load(bytes.NewReader(models[2]))
	if err != nil {
		fmt.Println(err)
		return
	}
	tomorrow := &table.Batch{Rows: 2, Columns: []table.Column{
		{Name: "hour", Numbers: []float64{6, 21}}, {Name: "carrier", Kind: table.Category, Codes: []int32{0, 0}, Values: []string{"UA"}},
	}}
	p, err := file.Predict(nil, tomorrow)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Classes[1], "at 6:", p[1] > 0.5, "at 21:", p[3] > 0.5)
	// Output:
	// 90 rows held out of 3 members, AUC 1.00
	// the same at all: true
	// delay>15 at 6: false at 21: true
}

// flights are 100 rows, whose delays grow with the hour.
func flights(member int) []byte {
	text := "flight,hour,carrier,delay\n"
	for i := range 100 {
		hour := (i*7 + member) % 24
		text += fmt.Sprintf("F%d,%d,%s,%d\n", i, hour, []string{"UA", "DL"}[i%2], 2*hour-12+i%5)
	}
	return []byte(text)
}

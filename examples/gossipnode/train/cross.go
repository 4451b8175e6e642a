package train

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/tensor"
)

// crossed is what a member brings to the table: its name, and its accuracies with the models of all.
type crossed struct {
	Name     string       `json:"name"`
	Accuracy []cli.Number `json:"accuracy"`
}

// gatherer is the flock, for data that cannot be added.
type gatherer interface {
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
}

// crossEvaluate makes the table of all models on all held-out data, unless training has ended with an error. Without it the
// result stands.
func crossEvaluate(ctx context.Context, t *training, ended error) *result.Cross {
	if !t.CrossEvaluate || ended != nil {
		return nil
	}
	model := make(tensor.Vector, t.work.Params.Layout().Len())
	_, err := t.peer.Snapshot(model, 0)
	if err == nil {
		var table *result.Cross
		table, err = cross(ctx, t.peer, t.PeerName()+" "+t.peer.Self().Short(), model, func(x tensor.Vector) float64 {
			right, _ := t.work.Model.Evaluate(x, t.work.Data.HeldOut)
			return right
		})
		if err == nil {
			return table
		}
	}
	t.Log.Warn("the models could not be evaluated on each other's data", zap.Error(err))
	return nil
}

// cross hands every member's model to all, and then every member's accuracies. Nothing that a member brings is used unchecked: a model
// that is of another length or not finite has no accuracy, and a row of another form is left empty.
func cross(ctx context.Context, flock gatherer, name string, model tensor.Vector, evaluate func(tensor.Vector) float64) (*result.Cross, error) {
	bytes := make([]byte, 0, tensor.ValueSize*len(model))
	for _, v := range model {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
	}
	models, err := flock.Gather(ctx, "cross-evaluate/models", bytes)
	if err != nil {
		return nil, err
	}
	own := crossed{Name: name}
	for _, of := range models {
		right := math.NaN()
		if x, ok := read(of, len(model)); ok {
			right = evaluate(x)
		}
		own.Accuracy = append(own.Accuracy, cli.Number(right))
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	rows, err := flock.Gather(ctx, "cross-evaluate/rows", text)
	if err == nil && len(rows) != len(models) {
		err = fmt.Errorf("%d members had models, %d have evaluated them", len(models), len(rows))
	}
	if err != nil {
		return nil, err
	}
	table := &result.Cross{}
	for i, text := range rows {
		var row crossed
		if err := json.Unmarshal(text, &row); err != nil || len(row.Accuracy) != len(models) {
			row = crossed{Name: fmt.Sprint("peer ", i), Accuracy: make([]cli.Number, len(models))}
			for k := range row.Accuracy {
				row.Accuracy[k] = cli.Number(math.NaN())
			}
		}
		table.Peers, table.Accuracy = append(table.Peers, cli.Cut(control.Printable(row.Name), control.MaxName)), append(table.Accuracy, row.Accuracy)
	}
	return table, nil
}

// read reads so many values, which must be finite.
func read(bytes []byte, values int) (tensor.Vector, bool) {
	if len(bytes) != tensor.ValueSize*values {
		return nil, false
	}
	x := make(tensor.Vector, values)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[tensor.ValueSize*i:]))
	}
	return x, tensor.Finite(x)
}

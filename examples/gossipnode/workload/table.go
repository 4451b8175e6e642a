package workload

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"os"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// ShareOf is a peer's share of the rows of a table.
func ShareOf(s settings.Settings, source *rows.Source) (rows.Share, error) {
	part, parts, err := s.PartOf()
	if err != nil {
		return rows.Share{}, cli.Usage(err)
	}
	return rows.Share{Source: source, Table: s.Rows(), Number: part, Peers: parts, Seed: s.Seed}, nil
}

// OfTable makes the workload of a peer from prepared rows.
func OfTable(s settings.Settings, share rows.Share, prepared *prepare.Prepared, data *dataset.Data, identity ed25519.PublicKey) (*Workload, error) {
	w, err := Equip(s, data, orderOf(s, share.Number, share.Peers, binary.LittleEndian.Uint64(identity)))
	if err == nil {
		w.Prepared = prepared
	}
	return w, err
}

// Keep writes the preparation of the rows to a file, if there is one and the file does not exist yet.
func (w *Workload) Keep(path string) error {
	if _, err := os.Stat(path); w.Prepared == nil || path == "" || err == nil {
		return nil
	}
	return rows.Save(w.Prepared, path)
}

// Area is the area under the curve of a model on the held-out rows of a table.
func (w *Workload) Area(ctx context.Context) (float64, error) {
	held := w.Data.HeldOut
	examples := learn.Rows{Features: &table.Batch{Rows: held.Len()}, Classes: make([]string, held.Classes())}
	for i := range held.Len() {
		examples.Target = append(examples.Target, float64(held.Label(i)))
	}
	scores, err := learn.Evaluate(ctx, table.Alone{}, fixed{w.Model.Probabilities(w.Params.Vector(), held), held.Classes()}, examples)
	if err != nil {
		return 0, err
	}
	return scores.Classes.AUC, nil
}

// fixed is a model with known probabilities.
type fixed struct {
	probabilities []float64
	classes       int
}

// Outputs implements learn.Model.
func (t fixed) Outputs() int { return t.classes }

// Predict implements learn.Model, only for the rows that the probabilities belong to.
func (t fixed) Predict(dst []float64, _ *table.Batch) ([]float64, error) {
	return append(dst, t.probabilities...), nil
}

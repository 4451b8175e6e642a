package table

import (
	"context"
	"iter"
)

// Table is the rows of one member before members have agreed on how to read them. *read.Table and the result of Held
// implement it.
type Table interface {
	// Schema is the columns as they are read; nil if there are none.
	Schema() *Schema
	// Pin sets the schema for reading the rows, as returned by Agree.
	Pin(schema *Schema) error
	// Rows is a Source.
	Rows(ctx context.Context) iter.Seq2[*Batch, error]
}

// Held is a Table of batches in memory, all with the same columns.
func Held(batches ...*Batch) Table { return held(batches) }

type held []*Batch

func (h held) Schema() *Schema {
	if len(h) == 0 {
		return nil
	}
	s := &Schema{}
	for _, c := range h[0].Columns {
		s.Fields = append(s.Fields, Field{Name: c.Name, Kind: c.Kind})
	}
	return s
}

func (h held) Pin(schema *Schema) error {
	if s := h.Schema(); s != nil {
		if apart := schema.apart(s); len(apart) > 0 {
			return &SchemaError{Differences: apart}
		}
	}
	return nil
}

func (h held) Rows(ctx context.Context) iter.Seq2[*Batch, error] { return InMemory(h...)(ctx) }

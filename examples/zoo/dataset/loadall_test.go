package dataset

import (
	"errors"
	"slices"
	"testing"
)

// TestLoadAllIsLoadOfEach compares the parts that one process loads together with those
// that each peer loads by itself.
func TestLoadAllIsLoadOfEach(t *testing.T) {
	const parts = 3
	for _, c := range []Config{
		{Name: "cifar10", Dir: write(t, map[string][]byte{"data_batch_1.bin": cifarBatch(0, 20), "test_batch.bin": cifarBatch(20, 4)}), Parts: parts, Seed: 4},
		{Name: "mnist", Dir: writeFamily(t, moreOf), Parts: parts, Seed: 4, Shard: Shard{Alpha: 5}},
	} {
		all, err := LoadAll(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for i := range parts {
			c.Part = i
			one, err := Load(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if all[i].Len() != one.Len() || all[i].Total != one.Total || all[i].HeldOut.Len() != one.HeldOut.Len() {
				t.Errorf("%s, part %d: %d pictures of %d, alone %d of %d", c.Name, i, all[i].Len(), all[i].Total, one.Len(), one.Total)
			}
			if !slices.Equal(firstBatch(t, all[i]).Labels, firstBatch(t, one).Labels) {
				t.Errorf("%s, part %d: other pictures than alone", c.Name, i)
			}
		}
	}
	if _, err := LoadAll(t.Context(), Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("all of no parts: %v", err)
	}
}

func firstBatch(t *testing.T, d *Data) Batch {
	t.Helper()
	batches, err := d.Batches(2, 9, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	var b Batch
	if err := batches.Next(&b); err != nil {
		t.Fatal(err)
	}
	return b
}

// moreOf puts twenty pictures of four classes where there were three.
func moreOf(files map[string][]byte) {
	labels := make([]byte, 20)
	for i := range labels {
		labels[i] = byte(i % 4)
	}
	files[trainImages] = idx(make([]byte, len(labels)*Inputs), uint32(len(labels)), Side, Side)
	files[trainLabels] = idx(labels, uint32(len(labels)))
}

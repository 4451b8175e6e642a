package wire

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// stagesVectors are what members say that train stages of a model.
func stagesVectors() []vector {
	return []vector{
		{
			name: "batch", about: "a micro-batch of 16 examples goes on to the second stage, as bf16",
			message: Batch{Stage: 2, Codec: 2, Source: "12D3KooW", Number: 77, Round: 3, Examples: 16, Values: 1024, Targets: 16},
			parts: []part{{1, "kind: 0, to train on"}, {1, "stage: 2"}, {1, "codec: 2, bf16"}, {1, "length of the id of the source"}, {8, "source: \"12D3KooW\""},
				{8, "number: 77"}, {8, "round: 3, the third"}, {4, "examples: 16"}, {4, "values: 1024"}, {4, "targets: 16"}},
		},
		{
			name: "batch-load", about: "a newcomer asks how much the first stage has to do",
			message: Batch{Kind: BatchLoad, Stage: 1},
			parts:   []part{{1, "kind: 2, a question"}, {1, "stage: 1"}, {1, "codec: none"}, {1, "length of the id of the source"}, {8, "number"}, {8, "round: none"}, {4, "examples"}, {4, "values"}, {4, "targets"}},
		},
		{
			name: "batch-round", about: "a member of the second stage has back what it made in the first two rounds, and its parameters are of version 3 in the third",
			message: Batch{Kind: BatchRound, Stage: 2, Number: 3, Round: 3},
			parts: []part{{1, "kind: 5, report of a round"}, {1, "stage: 2"}, {1, "codec: none"}, {1, "length of the id of the source"}, {8, "version: 3"}, {8, "round: 3, the third"},
				{4, "examples"}, {4, "values"}, {4, "targets"}},
		},
		{
			name: "activations", about: "values of it, raw",
			header: Header{Type: TypeActivations}, payload: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, parts: []part{{4, "1"}, {4, "-2"}},
		},
		{
			name: "outcome", about: "it is computed, and its errors follow",
			message: Outcome{Waiting: 1, Each: 30_000_000, Loss: 0.5, Values: 1024},
			parts:   []part{{1, "answer: 0, computed"}, {4, "micro-batches that wait: 1"}, {8, "nanoseconds for each: 30 ms"}, {8, "loss: 0.5"}, {4, "values: 1024"}},
		},
	}
}

// stagesMessages draw messages of stages, with every field anywhere in its range.
func stagesMessages(t *rapid.T) []func() Message {
	return []func() Message{
		func() Message {
			return Batch{Kind: BatchKind(rapid.Uint8Max(uint8(batchKinds)-1).Draw(t, "kind")), Stage: rapid.Byte().Draw(t, "stage"), Codec: rapid.Byte().Draw(t, "codec"),
				Source: rapid.StringMatching(`[a-z]{0,64}`).Draw(t, "source"), Number: rapid.Uint64().Draw(t, "number"), Round: rapid.Uint64().Draw(t, "round"),
				Examples: rapid.Uint32Max(MaxExamples).Draw(t, "examples"), Values: rapid.Uint32Max(MaxActivations).Draw(t, "values"), Targets: rapid.Uint32Max(MaxActivations).Draw(t, "targets")}
		},
		func() Message {
			return Outcome{Answer: rapid.Uint8Max(2).Draw(t, "answer"), Waiting: rapid.Uint32().Draw(t, "waiting"), Each: rapid.Uint64Max(math.MaxInt64).Draw(t, "each"),
				Loss: rapid.Float64Range(-10, 10).Draw(t, "loss"), Values: rapid.Uint32Max(MaxActivations).Draw(t, "values")}
		},
	}
}

func TestBatchesThatCannotBe(t *testing.T) {
	for what, m := range map[string]Message{
		"no such kind":      Batch{Kind: batchKinds},
		"many examples":     Batch{Examples: MaxExamples + 1},
		"many values":       Batch{Values: MaxActivations + 1},
		"many targets":      Batch{Targets: MaxActivations + 1},
		"no such answer":    Outcome{Answer: 3},
		"many centuries":    Outcome{Each: 1 << 63},
		"a loss that is no": Outcome{Loss: math.NaN()},
		"many errors":       Outcome{Values: MaxActivations + 1},
	} {
		if _, err := recode(m.Type(), m.Append(nil)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

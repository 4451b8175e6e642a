package replica_test

import (
	"math/rand/v2"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// oneWay are the codecs that transfers take.
var oneWay = []string{"raw", "bf16", "fp16", "int8"}

// averager is a replica with gradients, and both sides of a transfer.
type averager struct {
	*replica.Replica
	sender   *replica.Sender
	receiver *replica.Receiver
	frame    []byte
}

func newAverager(t tester, params *tensor.Params, sliceLen int) *averager {
	t.Helper()
	r, err := replica.New(params, replica.Options{SliceLen: sliceLen})
	if err != nil {
		t.Fatal(err)
	}
	r.UseGradients()
	return &averager{Replica: r, sender: replica.NewSender(r), receiver: replica.NewReceiver(r)}
}

// smallAveragers have models of which three slices have two pieces, the second short.
func smallAveragers(t tester, n int) []*averager {
	t.Helper()
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "w", Shape: []int{21, 10}},
		tensor.Spec{Name: "fixed", Shape: []int{3}, Sharing: tensor.Frozen},
		tensor.Spec{Name: "own", Shape: []int{4}, Sharing: tensor.Local},
		tensor.Spec{Name: "v", Shape: []int{90}},
		tensor.Spec{Name: "b", Shape: []int{2}, Kind: tensor.Bias},
	)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*averager, n)
	for i := range all {
		all[i] = newAverager(t, tensor.NewParams(layout), 100)
	}
	return all
}

// largeAverager has one layer of so many values.
func largeAverager(t tester, values int) *averager {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{values}})
	if err != nil {
		t.Fatal(err)
	}
	return newAverager(t, tensor.NewParams(layout), 0)
}

// put gives the averager a gradient of small whole numbers.
func (a *averager) put(t tester, rng *rand.Rand, samples int) tensor.Vector {
	t.Helper()
	gradient := make(tensor.Vector, a.Len())
	for i := range gradient {
		gradient[i] = float32(rng.IntN(17) - 8)
	}
	if err := a.PutRange(gradient, 0, len(gradient), float64(samples)); err != nil {
		t.Fatal(err)
	}
	return gradient
}

func terms(t tester, name string, exchange uint64, m collective.Transfer) replica.TransferTerms {
	t.Helper()
	return replica.TransferTerms{Exchange: exchange, Transfer: m, Plan: coding.Uniform(codec(t, name))}
}

// send carries a transfer out, up to so many PARTs.
func (a *averager) send(t tester, to *averager, terms replica.TransferTerms, parts int) {
	t.Helper()
	if err := a.sender.Begin(terms); err != nil {
		t.Fatal(err)
	}
	if err := to.receiver.Begin(terms); err != nil {
		t.Fatal(err)
	}
	for range parts {
		frame, ok, err := a.sender.Next(a.frame)
		if a.frame = frame; err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if err := to.receiver.Part(headerIn(frame), frame[wire.HeaderSize:]); err != nil {
			t.Fatal(err)
		}
	}
	if parts == whole && !(a.sender.Done() && to.receiver.Done()) {
		t.Fatal("all has been sent, and the transfer is not done")
	}
}

// whole is more PARTs than any transfer here has.
const whole = 1 << 20

// peek reads the sum as a PART shows it: values and weights, by shared value.
func (a *averager) peek(t tester) (values tensor.Vector, weights []float64) {
	t.Helper()
	m := collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: true, Parts: 1}
	if err := a.sender.Begin(terms(t, "raw", 1, m)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, ok, err := a.sender.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return values, weights
		}
		info, code, err := wire.SplitPart(frame[wire.HeaderSize:])
		if err != nil {
			t.Fatal(err)
		}
		n := len(code) / tensor.ValueSize
		if info.Weight == 0 {
			n = pieceValues(int(headerIn(frame).Slice), int(info.Pieces))
		}
		x := make(tensor.Vector, n)
		if info.Weight > 0 {
			tensor.FromBytes(x, code)
		}
		scale := float32(1)
		for float64(2*scale) <= info.Weight {
			scale *= 2
		}
		for _, v := range x {
			values, weights = append(values, scale*v), append(weights, info.Weight)
		}
	}
}

// pieceValues is how many values there are in pieces of the small averagers' model:
// slices of 100, 100, 10, 90 and 2 values, pieces of 64.
func pieceValues(first, count int) (values int) {
	for _, length := range []int{64, 36, 64, 36, 10, 64, 26, 2}[first : first+count] {
		values += length
	}
	return values
}

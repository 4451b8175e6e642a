package sim_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
)

// loadBesieged reads MNIST for flocks among liars, whose bounds are those of a model with 64
// hidden units. Without -tables the pictures are half as wide and half as high, which costs half
// the time: with the seed of these tests, the honest learn to within a point of what they do from
// whole ones, and what liars cost them differs by 1.6 points at most. Accuracy is then measured on
// a quarter of the held-out digits.
func loadBesieged(t *testing.T) *digits {
	t.Helper()
	d := loadDigits(t)
	var err error
	if !*tables {
		if d.test, err = halved(d.test.Spread(d.test.Len() / 4)); err != nil {
			t.Fatal(err)
		}
	}
	if d.model, err = nets.NewMLP(d.test.Inputs(), 64, dataset.Classes); err != nil {
		t.Fatal(err)
	}
	return d
}

// besiegedTrain are the pictures that flocks among liars learn from.
var besiegedTrain = sync.OnceValues(func() (*dataset.Set, error) {
	if *tables {
		return loaded.data.Train, nil
	}
	return halved(loaded.data.Train)
})

// halved are the same digits, half as wide and half as high: each pixel is the mean of four, and
// a picture's values have the length that they have in the whole one.
func halved(of *dataset.Set) (*dataset.Set, error) {
	whole := of.Shape()
	half := dataset.Shape{Height: whole.Height / 2, Width: whole.Width / 2, Channels: 1}
	pixels, labels := make([]uint8, 0, of.Len()*half.Values()), make([]uint8, of.Len())
	for i := range labels {
		labels[i] = uint8(of.Label(i))
		from := of.Image(i)
		for y := range half.Height {
			for x := range half.Width {
				above := from[2*y*whole.Width+2*x:]
				below := above[whole.Width:]
				pixels = append(pixels, uint8((int(above[0])+int(above[1])+int(below[0])+int(below[1]))/4))
			}
		}
	}
	return dataset.NewSet(pixels, labels, half, of.Classes(), dataset.Normalization{Scale: 0.15})
}

// dividing cuts MNIST, which has been loaded, into parts for so many peers; 0 is alike.
func dividing(dirichlet float64, peers int) ([pupilPeers]*dataset.Set, error) {
	type cut struct {
		dirichlet float64
		peers     int
	}
	parts, _ := loaded.cuts.LoadOrStore(cut{dirichlet, peers}, sync.OnceValues(func() (parts [pupilPeers]*dataset.Set, err error) {
		train, err := besiegedTrain()
		if err != nil {
			return parts, err
		}
		labels := make([]uint8, train.Len())
		for i := range labels {
			labels[i] = uint8(train.Label(i))
		}
		for i := range parts {
			if i >= peers {
				parts[i] = parts[i%peers]
				continue
			}
			indices, err := twoRuns(labels, i, peers), error(nil)
			if dirichlet != twoClasses {
				indices, err = dataset.Shard{Alpha: dirichlet}.Part(labels, 1, i, peers)
			}
			if err != nil {
				return parts, err
			}
			parts[i] = train.Subset(indices)
		}
		return parts, nil
	}))
	return parts.(func() ([pupilPeers]*dataset.Set, error))()
}

// twoClasses, as how unlike parts are, gives each peer two runs of the pictures in the order of their
// labels, so that hardly anybody has more than two or three digits (McMahan et al. 2017).
const twoClasses = -2

func twoRuns(labels []uint8, peer, peers int) (indices []int32) {
	order := make([]int32, len(labels))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(labels[a]) - int(labels[b]) })
	run := len(order) / (2 * peers)
	for _, start := range []int{peer * run, (peer + peers) * run} {
		indices = append(indices, order[start:start+run]...)
	}
	return indices
}

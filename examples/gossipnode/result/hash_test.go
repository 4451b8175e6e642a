package result

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestModelHash is that of the bytes, computed plainly, but for what is local.
func TestModelHash(t *testing.T) {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "weight", Shape: []int{40_000}}, // more than a piece
		tensor.Spec{Name: "mean", Shape: []int{2}, Kind: tensor.Statistic, Sharing: tensor.Local},
		tensor.Spec{Name: "bias", Shape: []int{3}, Kind: tensor.Bias})
	if err != nil {
		t.Fatal(err)
	}
	model := tensor.NewParams(layout)
	values := model.Vector()
	var plain []byte
	for i := range values {
		values[i] = float32(i) / 3
		if r, _ := layout.Lookup("mean"); i >= r.Offset && i < r.Offset+r.Len {
			continue
		}
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(values[i]))
	}
	if got, want := Hash(model), fmt.Sprintf("%x", sha256.Sum256(plain))[:16]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	values[len(values)-1] = float32(math.Copysign(0, -1))
	if Hash(model) == fmt.Sprintf("%x", sha256.Sum256(plain))[:16] {
		t.Error("the last value does not count")
	}
}

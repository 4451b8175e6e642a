package result

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestModelHash is that of the bytes, computed plainly.
func TestModelHash(t *testing.T) {
	values := make(tensor.Vector, 40_000) // more than a piece
	var plain []byte
	for i := range values {
		values[i] = float32(i) / 3
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(values[i]))
	}
	if got, want := Hash(values), fmt.Sprintf("%x", sha256.Sum256(plain))[:16]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	values[len(values)-1] = float32(math.Copysign(0, -1))
	if Hash(values) == fmt.Sprintf("%x", sha256.Sum256(plain))[:16] {
		t.Error("the last value does not count")
	}
}

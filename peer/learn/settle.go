package learn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// settle gives all members the same values to the last bit. Each member has computed values from the same sums, but
// processors of different kinds may round differently: if the hashes of the values differ, all members take the
// values of the first.
func settle(ctx context.Context, flock table.Flock, name string, values []float64) ([]float64, error) {
	data := appendFloats(nil, values...)
	hash := sha256.Sum256(data)
	hashes, err := flock.Gather(ctx, name+"/settled", hash[:])
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(hashes, func(h []byte) bool { return !bytes.Equal(h, hashes[0]) }) {
		return values, nil
	}
	all, err := flock.Gather(ctx, name+"/first", data)
	if err != nil {
		return nil, err
	}
	first, err := parseFloats(all[0])
	if err != nil || len(first) != len(values) {
		return nil, fmt.Errorf("learn: %s: a member has sent %d bytes instead of %d numbers", name, len(all[0]), len(values))
	}
	return first, nil
}

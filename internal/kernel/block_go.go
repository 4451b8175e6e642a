package kernel

import "math"

// extentGo compares values as the integers that order alike, so that zeros of
// both signs and NaN have their place: -0 below 0, NaN at both ends.
func extentGo(x []float32) (low, high float32) {
	least, most := int32(math.MaxInt32), int32(math.MinInt32)
	for _, v := range x {
		key := orderKey(int32(math.Float32bits(v)))
		least, most = min(least, key), max(most, key)
	}
	return math.Float32frombits(uint32(orderKey(least))), math.Float32frombits(uint32(orderKey(most)))
}

// orderKey turns the bits of a float32 into the integer that orders alike, and
// back: of a negative value it inverts all bits but the sign.
func orderKey(bits int32) int32 { return bits ^ int32(uint32(bits>>31)>>1) }

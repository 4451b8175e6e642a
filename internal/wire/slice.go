package wire

import (
	"encoding/binary"
	"math"
)

// InfoSize is the size, in bytes, of the sub-header of CODE and DIFF payloads. Eight bytes keep the codec's bytes
// aligned in the payload.
const InfoSize = 8

// CodeInfo is the sub-header of a CODE payload.
type CodeInfo struct {
	// Bound is the sender's clipping bound τ of this slice, as a Euclidean distance: above zero, +Inf for no bound.
	Bound float32
	// Codec codes the slice and its answer; it is one of those accepted.
	Codec uint8
}

// AppendCodeInfo appends the sub-header of a CODE payload; the caller appends the codec's bytes.
func AppendCodeInfo(dst []byte, info CodeInfo) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(info.Bound))
	return append(dst, info.Codec, 0, 0, 0)
}

// SplitCode splits a CODE payload into sub-header and codec's bytes, which alias the payload. It fails with
// ErrMessage.
func SplitCode(payload []byte) (CodeInfo, []byte, error) {
	if len(payload) < InfoSize {
		return CodeInfo{}, nil, malformed(TypeCode, "%d bytes, at least %d", len(payload), InfoSize)
	}
	bound := math.Float32frombits(binary.LittleEndian.Uint32(payload))
	if !(bound > 0) { // false for NaN
		return CodeInfo{}, nil, malformed(TypeCode, "clipping bound %g", bound)
	}
	if reserved := binary.LittleEndian.Uint32(payload[4:]) >> 8; reserved != 0 {
		return CodeInfo{}, nil, malformed(TypeCode, "reserved bytes hold %#06x", reserved)
	}
	return CodeInfo{Bound: bound, Codec: payload[4]}, payload[InfoSize:], nil
}

// DiffInfo is the sub-header of a DIFF payload.
type DiffInfo struct {
	// SquaredDistance is ‖x̂_A − x_P‖² over the slice, as the sender measured it
	// before weighting and clipping: finite, not negative.
	SquaredDistance float64
}

// AppendDiffInfo appends the sub-header of a DIFF payload; the caller appends the codec's bytes.
func AppendDiffInfo(dst []byte, info DiffInfo) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(info.SquaredDistance))
}

// SplitDiff splits a DIFF payload into sub-header and codec's bytes, which alias the payload. It fails with
// ErrMessage.
func SplitDiff(payload []byte) (DiffInfo, []byte, error) {
	if len(payload) < InfoSize {
		return DiffInfo{}, nil, malformed(TypeDiff, "%d bytes, at least %d", len(payload), InfoSize)
	}
	squared := math.Float64frombits(binary.LittleEndian.Uint64(payload))
	if !(squared >= 0 && squared <= math.MaxFloat64) { // false for NaN
		return DiffInfo{}, nil, malformed(TypeDiff, "squared distance %g", squared)
	}
	return DiffInfo{SquaredDistance: squared}, payload[InfoSize:], nil
}

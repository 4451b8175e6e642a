package wire

import (
	"encoding/binary"
	"math"
)

// Sizes of payloads, in bytes.
const (
	maxStateRequest = 32 + 1 + MaxRunName
	manifestSize    = 8 + 8 + 8 + 4 + 32
)

// StateRequest asks a neighbour for a copy of its parameters.
type StateRequest struct {
	// Run is the name of the run, as CheckRun wants it.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
}

// Type is TypeStateRequest.
func (StateRequest) Type() Type { return TypeStateRequest }

// Append appends the encoded message to dst.
func (m StateRequest) Append(dst []byte) []byte {
	return appendText(append(dst, m.Layout[:]...), m.Run)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *StateRequest) Decode(payload []byte) error {
	c := cursor{what: TypeStateRequest, rest: payload}
	m.Layout = c.hash()
	m.Run = c.run()
	return c.finish()
}

// Manifest answers a StateRequest: it describes the state that follows in
// STATE-SLICE frames, whose payloads are raw little-endian float32 values and
// whose headers carry the slice's index.
type Manifest struct {
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// FlockSteps is the sender's estimate of all members' steps together.
	FlockSteps uint64
	// Values is the number of values in the state, which are those that the layout
	// shares: at least 1.
	Values uint64
	// SliceLen is the number of values in every slice but the last, which has the
	// rest: 1 to MaxSliceLen.
	SliceLen uint32
	// SHA256 is the hash of the whole state as raw little-endian float32 values.
	SHA256 [32]byte
}

// Slices is the number of STATE-SLICE frames that make up the state. For a
// Manifest that Decode accepted it fits a Header's Slice.
func (m Manifest) Slices() uint64 {
	if m.Values == 0 || m.SliceLen == 0 {
		return 0
	}
	return (m.Values-1)/uint64(m.SliceLen) + 1
}

// Type is TypeManifest.
func (Manifest) Type() Type { return TypeManifest }

// Append appends the encoded message to dst.
func (m Manifest) Append(dst []byte) []byte {
	dst = append(dst, m.SHA256[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, m.Steps)
	dst = binary.LittleEndian.AppendUint64(dst, m.FlockSteps)
	dst = binary.LittleEndian.AppendUint64(dst, m.Values)
	return binary.LittleEndian.AppendUint32(dst, m.SliceLen)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
// A caller must compare Values with its own layout before it makes room for them.
func (m *Manifest) Decode(payload []byte) error {
	c := cursor{what: TypeManifest, rest: payload}
	m.SHA256 = c.hash()
	m.Steps = c.uint64()
	m.FlockSteps = c.uint64()
	if m.Values = c.uint64(); m.Values == 0 {
		c.fault("state of no values")
	}
	m.SliceLen = c.sliceLen()
	if m.Slices() > math.MaxUint32 {
		c.fault("%d values make more slices than can be numbered", m.Values)
	}
	return c.finish()
}

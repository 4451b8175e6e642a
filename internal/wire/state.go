package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Bounds of the messages about a state.
const (
	// HashSize is the size of a slice's hash, SHA-256.
	HashSize = sha256.Size
	// MaxWanted bounds the slices that one STATE-WANT asks for, and so the hashes in one STATE-HASHES frame.
	MaxWanted = 256
	// MaxPeerName bounds the bytes of a peer's id.
	MaxPeerName = 64
	// MaxSignature bounds the bytes of a signature; Ed25519 has as many.
	MaxSignature = 64
)

// Sizes of payloads, in bytes.
const (
	maxStateRequest = 32 + 8 + 1 + MaxRunName
	maxManifest     = 32 + 8 + 8 + 8 + 8 + 4 + 1 + MaxPeerName + 1 + MaxRunName + 1 + MaxSignature
	maxStateHashes  = 1 + MaxSignature + 2 + MaxWanted*HashSize
	stateWantSize   = 4 + 4
)

// StateRequest asks a member for a copy of its parameters.
type StateRequest struct {
	// Run is the name of the run, which CheckRun accepts.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
	// Steps is the least number of gradient steps of a frozen copy that the sender can use.
	Steps uint64
}

func (StateRequest) Type() Type                 { return TypeStateRequest }
func (m StateRequest) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *StateRequest) Decode(payload []byte) error {
	return m.fields(reader(TypeStateRequest, payload)).Finish()
}

func (m *StateRequest) fields(c Coder) Coder {
	c.Fixed(m.Layout[:])
	c.Uint64(&m.Steps)
	c.run(&m.Run)
	return c
}

// Manifest answers a StateRequest: it describes a frozen copy. The sender gives slices of that copy in STATE-SLICE
// frames, whose payloads are raw little-endian float32 values, and hashes of the slices in STATE-HASHES frames.
type Manifest struct {
	// Run and Layout are those of the run; Server and Incarnation are the id and the incarnation of the sender.
	Run         string
	Layout      [32]byte
	Server      string
	Incarnation uint64
	// Steps is the number of gradient steps that the frozen copy contains.
	Steps uint64
	// FlockSteps is the sender's estimate of all members' steps together.
	FlockSteps uint64
	// Values is the number of values in the state, at least 1: all values that the layout shares.
	Values uint64
	// SliceLen is the number of values in every slice but the last, which may have fewer: 1 to MaxSliceLen.
	SliceLen uint32
	// Signature is the state server's signature of Statement; 1 to MaxSignature bytes.
	Signature []byte
}

// Slices is the number of slices of the state. For a Manifest that Decode accepted, it fits in a Header's Slice.
func (m Manifest) Slices() uint64 {
	if m.Values == 0 || m.SliceLen == 0 {
		return 0
	}
	return (m.Values-1)/uint64(m.SliceLen) + 1
}

// statement is the start of the bytes that a state server signs, so that its signature is not valid for any other
// kind of message.
const statement = "murmuration state manifest 1\x00"

// Statement appends the bytes that the state server signs to dst: a constant text and all fields except the
// signature.
func (m Manifest) Statement(dst []byte) []byte {
	return m.signed(writer(append(dst, statement...))).out
}

func (Manifest) Type() Type                 { return TypeManifest }
func (m Manifest) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m. The caller must check the signature, and compare Values with its own layout before
// it allocates memory for them.
func (m *Manifest) Decode(payload []byte) error {
	return m.fields(reader(TypeManifest, payload)).Finish()
}

func (m *Manifest) fields(c Coder) Coder {
	c = m.signed(c)
	c.copied(&m.Signature, 1, 1, MaxSignature, "bytes of signature")
	return c
}

// signed codes the fields that the state server signs.
func (m *Manifest) signed(c Coder) Coder {
	c.Fixed(m.Layout[:])
	c.uint64s(&m.Incarnation, &m.Steps, &m.FlockSteps)
	if c.Uint64(&m.Values); m.Values == 0 {
		c.Fault("state of no values")
	}
	if c.sliceLen(&m.SliceLen); m.Slices() > math.MaxUint32 {
		c.Fault("%d values make more slices than can be numbered", m.Values)
	}
	c.Text(&m.Server, 1, MaxPeerName)
	c.run(&m.Run)
	return c
}

// StateWant asks for consecutive slices of the state that a Manifest describes.
type StateWant struct {
	// First is the first slice, Count the number of slices: 1 to MaxWanted.
	First, Count uint32
}

func (StateWant) Type() Type                 { return TypeStateWant }
func (m StateWant) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *StateWant) Decode(payload []byte) error {
	return m.fields(reader(TypeStateWant, payload)).Finish()
}

func (m *StateWant) fields(c Coder) Coder {
	c.Uint32(&m.First)
	if c.Uint32(&m.Count); m.Count == 0 || m.Count > MaxWanted {
		c.Fault("%d slices: want 1 to %d", m.Count, MaxWanted)
	}
	if uint64(m.First)+uint64(m.Count) > math.MaxUint32 {
		c.Fault("slices from %d on: more than can be numbered", m.First)
	}
	return c
}

// StateHashes has the hashes of the slices that a StateWant asks for; it comes before these slices.
type StateHashes struct {
	// Signature is the state server's signature of Statement; 1 to MaxSignature bytes.
	Signature []byte
	// Hashes are the SHA-256 hashes of 1 to MaxWanted consecutive slices, one after the other. The frame's header has
	// the index of the first slice.
	Hashes []byte
}

// hashesStatement is the start of the bytes that a state server signs.
const hashesStatement = "murmuration state hashes 1\x00"

// Statement appends the bytes that the state server signs to dst: a constant text, the SHA-256 of the manifest's
// payload, the index of the first slice, and the hashes.
func (m StateHashes) Statement(dst []byte, manifest [HashSize]byte, first uint32) []byte {
	dst = append(append(dst, hashesStatement...), manifest[:]...)
	return append(binary.LittleEndian.AppendUint32(dst, first), m.Hashes...)
}

func (StateHashes) Type() Type                 { return TypeStateHashes }
func (m StateHashes) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m, whose slices are then parts of the payload.
func (m *StateHashes) Decode(payload []byte) error {
	return m.fields(reader(TypeStateHashes, payload)).Finish()
}

func (m *StateHashes) fields(c Coder) Coder {
	c.Bytes(&m.Signature, 1, 1, MaxSignature, "bytes of signature")
	n := c.Count(len(m.Hashes)/HashSize, 2, 1, MaxWanted, "hashes")
	if c.Reading {
		m.Hashes = c.take(n * HashSize)
	} else {
		c.out = append(c.out, m.Hashes...)
	}
	return c
}

package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Version is the wire version of every frame that this package writes, and the number at the end of the protocol ids.
const Version = 1

// Sizes of a frame, in bytes.
const (
	// HeaderSize is the size of every frame's header.
	HeaderSize = 32
	// MaxSliceLen is the most values a slice may hold: 256 KiB as float32.
	MaxSliceLen = 64 << 10
	// MaxPayload bounds the bytes after a header, and so the memory that a stranger can claim for each stream. It
	// allows a codec eight bytes for each value of the largest slice: four for the value itself, and four for scales,
	// checksums of blocks and the sub-header.
	MaxPayload = 8 * MaxSliceLen
	// MaxHandshake bounds the payload of every frame other than CODE, DIFF, RANGES,
	// STATE-SLICE, STATE-HASHES, CONTROL, MEMBER, PART, DESCRIPTION, SHARE, ROWS and ACTIVATIONS: the limit for a reader of streams not yet
	// accepted.
	MaxHandshake = 4 << 10
)

// Offsets of the header's fields; docs/WIRE.md has the table.
const (
	atVersion  = 2
	atType     = 3
	atFlags    = 4
	atExchange = 8
	atSlice    = 16
	atAck      = 20
	atLength   = 24
	atChecksum = 28
)

const (
	magic0, magic1 = 'M', 'u'
	// mustUnderstand are the flags that a receiver must know to read the frame; it may ignore the others.
	mustUnderstand = 0x0000ffff
	knownFlags     = FlagUnsummed | FlagSealed | FlagDescribe
)

// The flags of a header.
const (
	// FlagUnsummed: the frame has no checksum. It is allowed for CODE, DIFF and ACK on a stream where both sides have
	// declared FlagSealed; elsewhere the frame is refused.
	FlagUnsummed uint32 = 1 << 0
	// FlagSealed, on PROPOSE and ACCEPT: the sender's transport detects any change of the bytes, so checksums of
	// slices are not needed.
	FlagSealed uint32 = 1 << 16
	// FlagDescribe, on HELLO: the sender accepts a DESCRIPTION before the answer.
	FlagDescribe uint32 = 1 << 17
)

// Type is the type of a frame.
type Type uint8

// The frame types.
const (
	TypeHello   Type = 1
	TypeWelcome Type = 2
	TypeRefuse  Type = 3
	TypePropose Type = 4
	TypeAccept  Type = 5
	TypeCode    Type = 6
	TypeDiff    Type = 7
	TypeAck     Type = 8
	TypeStatus  Type = 9
	TypeSettled Type = 10
	TypeLane    Type = 11
	TypeRanges  Type = 12
	TypeRecord  Type = 13

	TypeDescription Type = 15

	TypeStateRequest Type = 16
	TypeManifest     Type = 17
	TypeStateSlice   Type = 18
	TypeStateHashes  Type = 19
	TypeStateWant    Type = 20

	TypeChallenge Type = 24
	TypeProof     Type = 25

	TypeControl Type = 32
	TypeMember  Type = 33

	TypeTell  Type = 40
	TypeOffer Type = 41
	TypePart  Type = 42
	TypeTaken Type = 43

	TypeSum   Type = 48
	TypeShare Type = 49

	TypeWant Type = 56
	TypeRows Type = 57
	TypeDone Type = 58

	TypeValues Type = 64
	TypeServed Type = 65

	TypeBatch       Type = 72
	TypeActivations Type = 73
	TypeOutcome     Type = 74
)

// types has, for each known type, its name in docs/WIRE.md and the most payload bytes of its frames.
var types = [256]struct {
	name string
	most int
}{
	TypeHello:        {"HELLO", maxHello},
	TypeWelcome:      {"WELCOME", welcomeSize},
	TypeRefuse:       {"REFUSE", maxRefuse},
	TypePropose:      {"PROPOSE", maxPropose},
	TypeAccept:       {"ACCEPT", maxAccept},
	TypeCode:         {"CODE", MaxPayload},
	TypeDiff:         {"DIFF", MaxPayload},
	TypeAck:          {"ACK", 0},
	TypeStatus:       {"STATUS", maxStatus},
	TypeSettled:      {"SETTLED", settledSize},
	TypeLane:         {"LANE", laneSize},
	TypeRanges:       {"RANGES", MaxPayload},
	TypeRecord:       {"RECORD", maxRecord},
	TypeDescription:  {"DESCRIPTION", MaxDescriptionFrame},
	TypeStateRequest: {"STATE-REQUEST", maxStateRequest},
	TypeManifest:     {"MANIFEST", maxManifest},
	TypeStateSlice:   {"STATE-SLICE", 4 * MaxSliceLen},
	TypeStateHashes:  {"STATE-HASHES", maxStateHashes},
	TypeStateWant:    {"STATE-WANT", stateWantSize},
	TypeChallenge:    {"CHALLENGE", challengeSize},
	TypeProof:        {"PROOF", proofSize},
	TypeControl:      {"CONTROL", MaxControl},
	TypeMember:       {"MEMBER", MaxMember},
	TypeTell:         {"TELL", tellSize},
	TypeOffer:        {"OFFER", maxOffer},
	TypePart:         {"PART", MaxPayload},
	TypeTaken:        {"TAKEN", 0},
	TypeSum:          {"SUM", maxSum},
	TypeShare:        {"SHARE", shareInfo + MaxShare},
	TypeWant:         {"WANT", maxWant},
	TypeRows:         {"ROWS", maxRows},
	TypeDone:         {"DONE", doneSize},
	TypeValues:       {"VALUES", valuesSize},
	TypeServed:       {"SERVED", maxServed},
	TypeBatch:        {"BATCH", maxBatch},
	TypeActivations:  {"ACTIVATIONS", 4 * ActivationsLen},
	TypeOutcome:      {"OUTCOME", outcomeSize},
}

// String returns the name that docs/WIRE.md uses.
func (t Type) String() string {
	if name := types[t].name; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// limit returns the most payload bytes a frame of this type may carry, and false
// for a type that is unknown.
func (t Type) limit() (int, bool) { return types[t].most, types[t].name != "" }

// Header is the header of a frame. A field that a type does not use is zero when sent and ignored when received.
type Header struct {
	// Type is the type of the payload.
	Type Type
	// Exchange is a number that the active peer gave to an exchange, or the sender to a transfer. It is unique within
	// an incarnation. All frames of the exchange or transfer have it, and those that ask about it later.
	Exchange uint64
	// Slice is the index of the slice in a CODE, DIFF or STATE-SLICE, or of the first slice of a RANGES or
	// STATE-HASHES. A CODE that repeats failed blocks, and its DIFF, have the index plus the number of slices for
	// each earlier attempt. On PART it is the index of the first piece.
	Slice uint32
	// Ack, on CODE and ACK, is cumulative: the sender has applied the slices of the first Ack CODE frames of this
	// stream.
	Ack uint32
	// Flags are FlagUnsummed, FlagSealed and FlagDescribe; a Reader drops all others.
	Flags uint32
}

// Reserve starts a frame in buf and drops its contents: it returns a slice of HeaderSize bytes, to which the caller
// appends the payload. It allocates only if buf has no room for a header.
func Reserve(buf []byte) []byte {
	return append(buf[:0], make([]byte, HeaderSize)...)
}

// Seal completes frame, which Reserve began and the caller has appended a payload to: it writes the header, length
// and checksum included. It fails with ErrType for an unknown type, with ErrTooLong for a payload that no receiver
// would accept, and with ErrMessage if frame has no room for a header; frame is then unchanged.
func Seal(frame []byte, h Header) error {
	if len(frame) < HeaderSize {
		return fmt.Errorf("wire: seal %v of %d bytes, which Reserve did not begin: %w", h.Type, len(frame), ErrMessage)
	}
	length := len(frame) - HeaderSize
	if err := checkLength(h.Type, uint64(length), MaxPayload); err != nil {
		return fmt.Errorf("wire: seal %v: %w", h.Type, err)
	}
	frame[0], frame[1] = magic0, magic1
	frame[atVersion] = Version
	frame[atType] = uint8(h.Type)
	binary.LittleEndian.PutUint32(frame[atFlags:], h.Flags)
	binary.LittleEndian.PutUint64(frame[atExchange:], h.Exchange)
	binary.LittleEndian.PutUint32(frame[atSlice:], h.Slice)
	binary.LittleEndian.PutUint32(frame[atAck:], h.Ack)
	binary.LittleEndian.PutUint32(frame[atLength:], uint32(length))
	sum := uint32(0)
	if h.Flags&FlagUnsummed == 0 {
		sum = checksum(frame[:HeaderSize], frame[HeaderSize:])
	}
	binary.LittleEndian.PutUint32(frame[atChecksum:], sum)
	return nil
}

// parse reads a header of HeaderSize bytes and checks all of it except the checksum, which needs the payload. It
// returns the payload's length, which is within the type's limit and the given one.
//
// It checks the magic first, then the version: the rest of another version's header is unknown here. Only REFUSE
// means the same in every version, so that peers of different versions can tell each other why they do not
// communicate.
func parse(header []byte, limit int, sealed bool) (Header, int, error) {
	if header[0] != magic0 || header[1] != magic1 {
		return Header{}, 0, fmt.Errorf("%w: it begins with %#02x %#02x", ErrMagic, header[0], header[1])
	}
	h := Header{
		Type:     Type(header[atType]),
		Exchange: binary.LittleEndian.Uint64(header[atExchange:]),
		Slice:    binary.LittleEndian.Uint32(header[atSlice:]),
		Ack:      binary.LittleEndian.Uint32(header[atAck:]),
	}
	if seen := header[atVersion]; seen != Version && h.Type != TypeRefuse {
		return Header{}, 0, &VersionError{Seen: seen}
	}
	flags := binary.LittleEndian.Uint32(header[atFlags:])
	if h.Flags = flags & knownFlags; flags&mustUnderstand != 0 && !(sealed && h.mayBeUnsummed() && flags&mustUnderstand == FlagUnsummed) {
		return Header{}, 0, fmt.Errorf("%v with flags %#08x: %w", h.Type, flags, ErrFlags)
	}
	length := binary.LittleEndian.Uint32(header[atLength:])
	if err := checkLength(h.Type, uint64(length), limit); err != nil {
		return Header{}, 0, err
	}
	return h, int(length), nil
}

// mayBeUnsummed tells whether frames of the type may come without a checksum.
func (h Header) mayBeUnsummed() bool {
	return h.Type == TypeCode || h.Type == TypeDiff || h.Type == TypeAck
}

// FrameSize is the size of the frame that begins with a header of HeaderSize bytes. The header is not checked.
func FrameSize(header []byte) int {
	return HeaderSize + int(binary.LittleEndian.Uint32(header[atLength:]))
}

// checkLength returns an error for unknown types, and for payloads longer than the type or limit allows. The length
// is unsigned, since an int of 32 bits cannot hold each length that a header may have.
func checkLength(t Type, length uint64, limit int) error {
	most, known := t.limit()
	if !known {
		return fmt.Errorf("%v: %w", t, ErrType)
	}
	if most = min(most, limit); length > uint64(most) {
		return fmt.Errorf("%v of %d bytes, at most %d: %w", t, length, most, ErrTooLong)
	}
	return nil
}

// checksum is the CRC32C over the header up to its checksum field, and the payload. It uses the table of hash/crc32,
// and so the processor's instruction where there is one.
func checksum(header, payload []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, header[:atChecksum]), table, payload)
}

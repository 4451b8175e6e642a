package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Version is the wire version of every frame that this package writes, and the
// number at the end of the protocol ids.
const Version = 1

// Sizes of a frame, in bytes.
const (
	// HeaderSize is the size of every frame's header.
	HeaderSize = 32
	// MaxSliceLen is the most values a slice may hold: 256 KiB as float32.
	MaxSliceLen = 64 << 10
	// MaxPayload is the most bytes that may follow a header, and so the most
	// memory a stranger can claim per stream. It allows a codec eight bytes for
	// each value of the largest slice: four for the value sent whole, and as much
	// again for scales, checksums of blocks and the sub-header.
	MaxPayload = 8 * MaxSliceLen
	// MaxHandshake bounds the payload of every frame other than CODE, DIFF, RANGES,
	// STATE-SLICE, STATE-HASHES, CONTROL, MEMBER, PART, DESCRIPTION and SHARE: the limit for a reader of streams not yet
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
	// mustUnderstand are the flags whose meaning a receiver has to know to read
	// the frame at all; the others may be ignored.
	mustUnderstand = 0x0000ffff
	knownFlags     = FlagUnsummed | FlagSealed | FlagDescribe
)

// The flags of a header.
const (
	// FlagUnsummed: the frame has no checksum, which is for CODE, DIFF and ACK on a stream
	// on which both sides have declared FlagSealed. Others are refused.
	FlagUnsummed uint32 = 1 << 0
	// FlagSealed, on PROPOSE and ACCEPT: what the sender's transport carries cannot be
	// altered on its way, so that checksums of slices would find nothing.
	FlagSealed uint32 = 1 << 16
	// FlagDescribe, on HELLO: a DESCRIPTION before the answer is welcome.
	FlagDescribe uint32 = 1 << 17
)

// Type is what a frame carries.
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
)

// types has, for each type that is known, the name that docs/WIRE.md uses and the most
// payload bytes that a frame of it may carry.
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

// Header is what a frame says before its payload. A field that means nothing to
// a type is zero when sent and ignored when received.
type Header struct {
	// Type says what the payload is.
	Type Type
	// Exchange is the number that the active peer gave to an exchange, or the sender to
	// a transfer, once in an incarnation; it is the same on every frame of it, and on those that ask about
	// it later.
	Exchange uint64
	// Slice is the index of the slice that a CODE, DIFF or STATE-SLICE carries, or
	// with which a RANGES or STATE-HASHES begins. A CODE for blocks that failed, and its DIFF, have
	// the number of slices added to it once for each attempt before. On PART it is the
	// index of the first piece.
	Slice uint32
	// Ack, on CODE and ACK, is cumulative: the slices of the first Ack CODE frames
	// of this stream have been applied.
	Ack uint32
	// Flags are FlagUnsummed, FlagSealed and FlagDescribe; others are not sent, and dropped when read.
	Flags uint32
}

// Reserve starts a frame in buf, whose contents are dropped: it returns a slice
// of HeaderSize bytes to append the payload to. It allocates only if buf has no
// room for a header.
func Reserve(buf []byte) []byte {
	return append(buf[:0], make([]byte, HeaderSize)...)
}

// Seal makes frame, which Reserve began and the caller has appended a payload to,
// ready to be sent: it fills in the header, length and checksum included. It
// fails, leaving frame as it was, with ErrType for a type that is unknown, with
// ErrTooLong for a payload that no receiver would take, and with ErrMessage if
// frame has no room for a header.
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

// parse reads a header of HeaderSize bytes and checks all of it but the checksum,
// which needs the payload. It returns the payload's length, which is within the
// type's limit and the given one.
//
// Magic comes first, then the version: what another version means by the rest is
// unknown here. REFUSE alone means the same in every version, so that peers of
// different versions can tell each other why they do not talk.
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

// FrameSize is the size of the frame that begins with a header of HeaderSize bytes, if that
// is one: nothing of it is checked.
func FrameSize(header []byte) int {
	return HeaderSize + int(binary.LittleEndian.Uint32(header[atLength:]))
}

// checkLength refuses unknown types, and payloads longer than the type or limit
// allows. The length is unsigned because an int of 32 bits cannot hold all that a
// header may claim.
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

// checksum is the CRC32C over the header up to its checksum field, and the
// payload. The table is the one that hash/crc32 keeps, so the processor's own
// instruction is used where there is one.
func checksum(header, payload []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, header[:atChecksum]), table, payload)
}

package wire

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// messageDecoders has the decoder of every type that carries a message.
func messageDecoders() map[Type]func([]byte) (Message, error) {
	return map[Type]func([]byte) (Message, error){
		TypeHello:        decodeAs[Hello],
		TypeWelcome:      decodeAs[Welcome],
		TypeRefuse:       decodeAs[Refuse],
		TypePropose:      decodeAs[Propose],
		TypeAccept:       decodeAs[Accept],
		TypeStatus:       decodeAs[Status],
		TypeSettled:      decodeAs[Settled],
		TypeLane:         decodeAs[Lane],
		TypeRecord:       decodeAs[Record],
		TypeDescription:  decodeAs[Description],
		TypeChallenge:    decodeAs[Challenge],
		TypeProof:        decodeAs[Proof],
		TypeStateRequest: decodeAs[StateRequest],
		TypeManifest:     decodeAs[Manifest],
		TypeStateWant:    decodeAs[StateWant],
		TypeStateHashes:  decodeAs[StateHashes],
		TypeControl:      decodeAs[Control],
		TypeTell:         decodeAs[Tell],
		TypeOffer:        decodeAs[Offer],
		TypeSum:          decodeAs[Sum],
		TypeWant:         decodeAs[Want],
		TypeDone:         decodeAs[Done],
		TypeValues:       decodeAs[Values],
		TypeServed:       decodeAs[Served],
		TypeBatch:        decodeAs[Batch],
		TypeOutcome:      decodeAs[Outcome],
	}
}

func decodeAs[M Message, P interface {
	*M
	Decode([]byte) error
}](payload []byte) (Message, error) {
	var m M
	err := P(&m).Decode(payload)
	return m, err
}

// recode decodes the payload of any type and encodes it again.
func recode(t Type, payload []byte) ([]byte, error) {
	if decode, ok := messageDecoders()[t]; ok {
		m, err := decode(payload)
		if err != nil {
			return nil, err
		}
		return m.Append(nil), nil
	}
	switch t {
	case TypeCode:
		info, code, err := SplitCode(payload)
		if err != nil {
			return nil, err
		}
		return append(AppendCodeInfo(nil, info), code...), nil
	case TypeDiff:
		info, code, err := SplitDiff(payload)
		if err != nil {
			return nil, err
		}
		return append(AppendDiffInfo(nil, info), code...), nil
	case TypePart:
		info, code, err := SplitPart(payload)
		if err != nil {
			return nil, err
		}
		return append(AppendPartInfo(nil, info), code...), nil
	case TypeShare:
		var m Share
		err := m.Decode(payload)
		return m.Append(nil), err
	case TypeRows:
		var m Rows
		err := m.Decode(payload)
		return m.Append(nil), err
	case TypeAck, TypeTaken, TypeRanges, TypeStateSlice, TypeMember, TypeActivations:
		return payload, nil
	}
	return nil, fmt.Errorf("%v: %w", t, ErrType)
}

// knownTypes are all types, in order.
func knownTypes() []Type {
	var types []Type
	for t := range 256 {
		if _, known := Type(t).limit(); known {
			types = append(types, Type(t))
		}
	}
	return types
}

// slowCRC32C is CRC32C (Castagnoli) from its definition, a bit at a time: the
// polynomial 0x1EDC6F41 with its bits reversed.
func slowCRC32C(parts ...[]byte) uint32 {
	crc := ^uint32(0)
	for _, data := range parts {
		for _, b := range data {
			crc ^= uint32(b)
			for range 8 {
				odd := crc & 1
				crc >>= 1
				if odd == 1 {
					crc ^= 0x82F63B78
				}
			}
		}
	}
	return ^crc
}

// fixChecksum makes the checksum of an edited frame right again.
func fixChecksum(frame []byte) {
	binary.LittleEndian.PutUint32(frame[atChecksum:], slowCRC32C(frame[:atChecksum], frame[HeaderSize:]))
}

// seal returns the frame of a payload.
func seal(t testing.TB, h Header, payload []byte) []byte {
	t.Helper()
	frame := append(Reserve(nil), payload...)
	if err := Seal(frame, h); err != nil {
		t.Fatal(err)
	}
	return frame
}

// pack returns the frame of a message.
func pack(t testing.TB, m Message) []byte {
	t.Helper()
	frame, err := Pack(nil, 0, m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

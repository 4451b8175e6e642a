package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

func TestChecksumIsCRC32C(t *testing.T) {
	if got := slowCRC32C([]byte("123456789")); got != 0xE3069283 {
		t.Fatalf("the oracle gives %#08x for the check value of CRC32C", got)
	}
	frame := seal(t, Header{Type: TypeStateSlice, Exchange: 9, Slice: 3}, []byte{1, 2, 3, 4, 5})
	want := slowCRC32C(frame[:atChecksum], frame[HeaderSize:])
	if got := binary.LittleEndian.Uint32(frame[atChecksum:]); got != want {
		t.Errorf("Seal writes checksum %#08x, want %#08x", got, want)
	}
}

func TestSealRefuses(t *testing.T) {
	cases := []struct {
		name    string
		typ     Type
		payload int
		want    error
	}{
		{"ack with a payload", TypeAck, 1, ErrTooLong},
		{"largest code", TypeCode, MaxPayload, nil},
		{"larger code", TypeCode, MaxPayload + 1, ErrTooLong},
		{"largest state slice", TypeStateSlice, 4 * MaxSliceLen, nil},
		{"larger state slice", TypeStateSlice, 4*MaxSliceLen + 1, ErrTooLong},
		{"no type", 0, 0, ErrType},
		{"unassigned type", 14, 0, ErrType},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			frame := append(Reserve(nil), make([]byte, c.payload)...)
			before := bytes.Clone(frame)
			if err := Seal(frame, Header{Type: c.typ}); !errors.Is(err, c.want) {
				t.Fatalf("error is %v, want %v", err, c.want)
			}
			if c.want != nil && !bytes.Equal(frame, before) {
				t.Error("the frame that was refused has been written to")
			}
		})
	}
	if err := Seal(make([]byte, HeaderSize-1), Header{Type: TypeAck}); !errors.Is(err, ErrMessage) {
		t.Errorf("a frame without room for a header: error is %v", err)
	}
}

// A buffer that carried another frame leaves no trace in the next one.
func TestReserveReusesTheBuffer(t *testing.T) {
	used := bytes.Repeat([]byte{0xff}, 100)
	frame := append(Reserve(used), 1, 2)
	if &frame[0] != &used[0] {
		t.Error("a buffer with room was not used")
	}
	h := Header{Type: TypeStateSlice, Slice: 1}
	if err := Seal(frame, h); err != nil {
		t.Fatal(err)
	}
	if fresh := seal(t, h, []byte{1, 2}); !bytes.Equal(frame, fresh) {
		t.Errorf("the frame in a used buffer is\n% x, in a new one\n% x", frame, fresh)
	}
	dirty := bytes.Repeat([]byte{0xff}, HeaderSize)
	if err := Seal(dirty, h); err != nil {
		t.Fatal(err)
	}
	if fresh := seal(t, h, nil); !bytes.Equal(dirty, fresh) {
		t.Errorf("the header over other bytes is\n% x, in a new frame\n% x", dirty, fresh)
	}
}

func TestVersionPolicy(t *testing.T) {
	read := func(frame []byte) (Header, []byte, error) {
		return NewReader(bytes.NewReader(frame), 0).Next()
	}
	t.Run("a newer version is refused and named", func(t *testing.T) {
		frame := pack(t, Accept{Window: 1})
		frame[atVersion] = 2
		fixChecksum(frame)
		_, _, err := read(frame)
		var version *VersionError
		if !errors.As(err, &version) || version.Seen != 2 || !errors.Is(err, ErrVersion) {
			t.Fatalf("error is %v, want a VersionError that has seen 2", err)
		}
		if reason, ok := ReasonFor(err); !ok || reason != ReasonVersion {
			t.Errorf("the reason to give is %v, %v", reason, ok)
		}
	})
	t.Run("a newer version's refusal is read", func(t *testing.T) {
		frame := pack(t, Refuse{Reason: ReasonVersion, Detail: "speaks 2"})
		frame[atVersion] = 2
		fixChecksum(frame)
		_, payload, err := read(frame)
		if err != nil {
			t.Fatal(err)
		}
		var m Refuse
		if err := m.Decode(payload); err != nil || m.Reason != ReasonVersion || m.Detail != "speaks 2" {
			t.Errorf("the refusal reads %+v, %v", m, err)
		}
	})
	t.Run("flags: the low half must be understood, the high half is ignored", func(t *testing.T) {
		for bit := range 32 {
			frame := pack(t, Accept{Window: 1})
			binary.LittleEndian.PutUint32(frame[atFlags:], 1<<bit)
			fixChecksum(frame)
			var want error
			if bit < 16 {
				want = ErrFlags
			}
			if _, _, err := read(frame); !errors.Is(err, want) {
				t.Errorf("flag %d: error is %v, want %v", bit, err, want)
			}
		}
	})
	t.Run("no checksum: slices alone, on streams that are sealed", func(t *testing.T) {
		for typ := range Type(64) {
			if types[typ].name == "" {
				continue
			}
			frame := seal(t, Header{Type: typ, Flags: FlagUnsummed}, nil)
			for _, sealed := range []bool{false, true} {
				reader := NewReader(bytes.NewReader(frame), 0)
				reader.Sealed = sealed
				want := ErrFlags
				if sealed && (typ == TypeCode || typ == TypeDiff || typ == TypeAck) {
					want = nil
				}
				if _, _, err := reader.Next(); !errors.Is(err, want) {
					t.Errorf("%v, sealed %t: error is %v, want %v", typ, sealed, err, want)
				}
			}
		}
		frame := seal(t, Header{Type: TypeAck, Flags: FlagUnsummed}, nil)
		binary.LittleEndian.PutUint32(frame[atFlags:], FlagUnsummed|1<<1)
		reader := NewReader(bytes.NewReader(frame), 0)
		reader.Sealed = true
		if _, _, err := reader.Next(); !errors.Is(err, ErrFlags) {
			t.Errorf("another flag beside it: error is %v", err)
		}
	})
	t.Run("unknown types are refused", func(t *testing.T) {
		for n := range 256 {
			frame := seal(t, Header{Type: TypeAck}, nil)
			frame[atType] = byte(n)
			fixChecksum(frame)
			var want error
			if known := n >= 1 && n <= 13 || n == 15 || n >= 16 && n <= 20 || n == 24 || n == 25 || n == 32 || n == 33 || n >= 40 && n <= 43 || n == 48 || n == 49 || n >= 56 && n <= 58 || n == 64 || n == 65 || n >= 72 && n <= 74; !known {
				want = ErrType
			}
			if _, _, err := read(frame); !errors.Is(err, want) {
				t.Errorf("type %d: error is %v, want %v", n, err, want)
			}
		}
	})
}

func TestReasonFor(t *testing.T) {
	for _, err := range []error{ErrMagic, ErrType, ErrTooLong, ErrChecksum, ErrMessage} {
		if reason, ok := ReasonFor(err); !ok || reason != ReasonProtocol {
			t.Errorf("%v: %v, %v", err, reason, ok)
		}
	}
	for _, err := range []error{ErrVersion, ErrFlags} {
		if reason, ok := ReasonFor(err); !ok || reason != ReasonVersion {
			t.Errorf("%v: %v, %v", err, reason, ok)
		}
	}
	for _, err := range []error{nil, ErrTruncated, errors.New("connection reset")} {
		if reason, ok := ReasonFor(err); ok {
			t.Errorf("%v: there is nothing to refuse, but the reason is %v", err, reason)
		}
	}
}

// The limits that the constants promise are the ones that the types have.
func TestLimits(t *testing.T) {
	for _, typ := range knownTypes() {
		most, _ := typ.limit()
		switch typ {
		case TypeCode, TypeDiff, TypeRanges, TypePart, TypeStateSlice, TypeStateHashes, TypeControl, TypeMember, TypeDescription, TypeSum, TypeShare, TypeRows, TypeActivations:
			if most > MaxPayload {
				t.Errorf("%v allows %d bytes, beyond MaxPayload", typ, most)
			}
		default:
			if most > MaxHandshake {
				t.Errorf("%v allows %d bytes, beyond MaxHandshake", typ, most)
			}
		}
	}
}

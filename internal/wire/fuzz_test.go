package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
)

// FuzzReader feeds any bytes as a stream. Whatever they are, the frames found are
// within the limits and are those that were in the bytes, the end is one of the
// documented errors, and how the bytes are cut in reads changes nothing.
func FuzzReader(f *testing.F) {
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 4096
		whole := NewReader(bytes.NewReader(stream), limit)
		pieces := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), limit)
		rest := stream
		for {
			h, payload, err := whole.Next()
			h2, payload2, err2 := pieces.Next()
			if h != h2 || !bytes.Equal(payload, payload2) || fmt.Sprint(err) != fmt.Sprint(err2) {
				t.Fatalf("in one piece %+v, % x, %v; byte by byte %+v, % x, %v", h, payload, err, h2, payload2, err2)
			}
			if cap(whole.buf) > limit {
				t.Fatalf("the buffer has %d bytes, the limit is %d", cap(whole.buf), limit)
			}
			if err != nil {
				checkEnd(t, err, rest)
				return
			}
			rest = checkFrame(t, h, payload, rest)
		}
	})
}

// checkEnd checks the error that ended a stream with those bytes unread.
func checkEnd(t *testing.T, err error, rest []byte) {
	if err == io.EOF {
		if len(rest) > 0 {
			t.Fatalf("clean end with %d bytes unread", len(rest))
		}
		return
	}
	for _, known := range []error{ErrMagic, ErrVersion, ErrFlags, ErrType, ErrTooLong, ErrChecksum, ErrTruncated} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Fatalf("undocumented error %v", err)
}

// checkFrame checks a frame against the bytes it was read from, and returns those
// that follow. Version and ignorable flags aside, sealing it again gives the same.
func checkFrame(t *testing.T, h Header, payload, rest []byte) []byte {
	frame := append(Reserve(nil), payload...)
	if len(frame) > len(rest) {
		t.Fatalf("a frame of %d bytes from %d", len(frame), len(rest))
	}
	if err := Seal(frame, h); err != nil {
		t.Fatalf("what was read cannot be sent: %v", err)
	}
	frame[atVersion] = rest[atVersion]
	copy(frame[atFlags:atExchange], rest[atFlags:atExchange])
	binary.LittleEndian.PutUint32(frame[atChecksum:], checksum(frame[:HeaderSize], frame[HeaderSize:]))
	if !bytes.HasPrefix(rest, frame) {
		t.Fatalf("read\n% x\nfrom\n% x", frame, rest)
	}
	return rest[len(frame):]
}

// FuzzMessages decodes any bytes as the payload of any type. What is accepted is
// the one encoding of what it means, and fits a frame.
func FuzzMessages(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		types := knownTypes()
		typ := Type(kind)
		if _, known := typ.limit(); !known {
			typ = types[int(kind)%len(types)]
		}
		again, err := recode(typ, payload)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		if !bytes.Equal(again, payload) {
			t.Fatalf("%v: % x is accepted and means % x", typ, payload, again)
		}
		if _, carries := messageDecoders()[typ]; !carries {
			return
		}
		if err := Seal(append(Reserve(nil), payload...), Header{Type: typ}); err != nil {
			t.Fatalf("what is accepted cannot be sent: %v", err)
		}
	})
}

// FuzzStatus decodes any bytes into a message that has been used before. What it
// held then, or how a decoder failed then, leaves no trace.
func FuzzStatus(f *testing.F) {
	f.Fuzz(func(t *testing.T, before, payload []byte) {
		var used, fresh Status
		_ = used.Decode(before)
		err, want := used.Decode(payload), fresh.Decode(payload)
		if fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("used, the message gives %v, new %v", err, want)
		}
		if cap(used.Slices) > 2*MaxInDoubt {
			t.Fatalf("the message holds %d slices, at most %d can be in doubt", cap(used.Slices), MaxInDoubt)
		}
		if err == nil && (used.Incarnation != fresh.Incarnation || !slices.Equal(used.Slices, fresh.Slices)) {
			t.Fatalf("used, the message is %+v, new %+v", used, fresh)
		}
	})
}

// The stored corpora, which go test runs when it does not fuzz, are the vectors,
// those that must be refused included.
func TestFuzzCorpora(t *testing.T) {
	write := func(target, name, text string) {
		t.Helper()
		path := filepath.Join("testdata", "fuzz", target, name)
		text = "go test fuzz v1\n" + text
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if stored, err := os.ReadFile(path); err != nil || string(stored) != text {
			t.Errorf("%s is not up to date (%v); run go test -update", path, err)
		}
	}
	var stream []byte
	for _, v := range vectors() {
		frame, h := v.build(t)
		write("FuzzMessages", v.name, fmt.Sprintf("byte(%q)\n[]byte(%q)\n", byte(h.Type), frame[HeaderSize:]))
		write("FuzzReader", v.name, fmt.Sprintf("[]byte(%q)\n", frame))
		stream = append(stream, frame...)
	}
	write("FuzzReader", "every-frame", fmt.Sprintf("[]byte(%q)\n", stream))
	full := Status{Incarnation: 2, Slices: make([]uint32, MaxInDoubt)}.Append(nil)
	short := Status{Incarnation: 1, Slices: []uint32{5, 6, 11}}.Append(nil)
	for name, payload := range map[string][]byte{"longer-then-shorter": short, "cut": short[:len(short)-1], "none": short[:8]} {
		write("FuzzStatus", name, fmt.Sprintf("[]byte(%q)\n[]byte(%q)\n", full, payload))
	}
	for _, v := range refusedVectors() {
		write("FuzzReader", v.name, fmt.Sprintf("[]byte(%q)\n", v.build(t)))
	}
}

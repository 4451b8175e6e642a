package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden vectors and the fuzz corpora from the code")

const vectorFolder = "../../testdata/wire"

// part describes some bytes of a payload for the reader of a vector.
type part struct {
	size int
	note string
}

// vector is one golden frame. Its payload is the message's, or payload itself for
// the types that carry values.
type vector struct {
	name    string
	about   string
	header  Header
	message Message
	payload []byte
	parts   []part
}

func layoutHash() (hash [32]byte) {
	for i := range hash {
		hash[i] = 0x20 + byte(i)
	}
	return hash
}

// vectors are one frame of every type, with the variants of an infinite bound and
// of an exchange that is unknown. They use values whose bytes can be told apart.
func vectors() []vector {
	values := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f}
	run := []part{{1, "length of the run's name"}, {6, "run: \"digits\""}}
	layout := part{32, "layout hash"}
	clipped := append(AppendCodeInfo(nil, CodeInfo{Bound: 1.5, Codec: 1}), values...)
	unclipped := append(AppendCodeInfo(nil, CodeInfo{Bound: float32(math.Inf(1)), Codec: 1}), values...)
	return append([]vector{
		{
			name: "hello", about: "a peer in its second life joins",
			message: Hello{Run: "digits", Layout: layoutHash(), Incarnation: 2, Steps: 1000},
			parts:   append([]part{layout, {8, "incarnation: 2"}, {8, "steps: 1000"}}, run...),
		},
		{
			name: "welcome", about: "its answer",
			message: Welcome{Incarnation: 1, Steps: 1016, FlockSteps: 4064, KnownIncarnation: 1},
			parts: []part{
				{8, "incarnation: 1"}, {8, "steps: 1016"}, {8, "flock's steps: 4064"},
				{8, "newest incarnation known of the peer that joins: 1"},
			},
		},
		{
			name: "refuse", about: "exchange 7 is refused: the layouts differ",
			header: Header{Exchange: 7}, message: Refuse{Reason: ReasonLayout, Detail: "naïve"},
			parts: []part{{1, "reason: 3, layout"}, {1, "length of the detail"}, {6, "detail: \"naïve\" (UTF-8)"}},
		},
		{
			name: "propose", about: "an active peer opens exchange 7",
			header: Header{Exchange: 7},
			message: Propose{
				Opening: Opening{Run: "digits", Layout: layoutHash(), View: 0x1122334455667788, Incarnation: 2, Steps: 1024,
					SliceLen: 16384, Cut: 0x99aabbccddeeff00, Codecs: []uint8{2, 1}},
				Overlap: 1, Lanes: 3,
			},
			parts: append(append([]part{
				layout, {8, "view digest: 0x1122334455667788"}, {8, "incarnation: 2"}, {8, "steps: 1024"},
				{4, "values per slice: 16384"},
				{8, "digest of the cut: 0x99aabbccddeeff00"}, {1, "exchanges under way, this one included: 1"}, {1, "lanes wanted: 3"},
			}, run...), part{1, "number of codecs offered"}, part{2, "codecs, the preferred first: 2, 1"}),
		},
		{
			name: "accept", about: "the passive peer accepts exchange 7, with weight 1/3",
			header:  Header{Exchange: 7},
			message: Accept{Codecs: []uint8{2, 1}, Window: 4, Overlap: 2, Lanes: 3, Steps: 1040, Incarnation: 1},
			parts: []part{
				{8, "steps: 1040"}, {8, "incarnation: 1"}, {2, "window: 4"},
				{1, "exchanges under way at the busier peer: 2"}, {1, "lanes: 3"},
				{1, "number of codecs"}, {2, "codecs that may be used: 2, 1"},
			},
		},
		{
			name: "lane", about: "the active peer opens the last lane of exchange 7",
			header: Header{Exchange: 7}, message: Lane{Lane: 2}, parts: []part{{1, "lane: 2"}},
		},
		{
			name: "record", about: "before it refuses exchange 7 for its role, the peer that was asked says what it is",
			header: Header{Exchange: 7}, message: Record{View: 0x1122334455667788, Signed: []byte("record, signed")},
			parts: []part{{8, "view digest: 0x1122334455667788"}, {2, "bytes of the record: 14"}, {14, "the member record, opaque here: \"record, signed\""}},
		},
		descriptionVector(),
		{
			name: "challenge", about: "where the run has a key, this comes before the answer to a hello",
			message: Challenge{Nonce: layoutHash()}, parts: []part{{32, "nonce"}},
		},
		{
			name: "proof", about: "what the peer that said hello proves, and then the one that asked for it",
			message: Proof{Nonce: layoutHash(), MAC: layoutHash()}, parts: []part{{32, "nonce of the sender"}, {32, "HMAC-SHA256 (here no true one)"}},
		},
		{
			name: "code", about: "slice 5 of exchange 7; the first three slices of this lane have been applied",
			header: Header{Type: TypeCode, Exchange: 7, Slice: 5, Ack: 3}, payload: clipped,
			parts: []part{
				{4, "clipping bound: 1.5"}, {1, "codec: 1"}, {3, "reserved: 0"},
				{12, "the codec's bytes (here float32: 1, -2, 0.5)"},
			},
		},
		{
			name: "code-unclipped", about: "a slice that its sender does not clip",
			header: Header{Type: TypeCode, Exchange: 7}, payload: unclipped,
			parts: []part{{4, "clipping bound: +Inf, none"}, {1, "codec: 1"}, {3, "reserved: 0"}, {12, "the codec's bytes"}},
		},
		{
			name: "ranges", about: "how far apart the passive peer expects the blocks of slices 4 and 5 of exchange 7 to be",
			header: Header{Type: TypeRanges, Exchange: 7, Slice: 4}, payload: []byte{96, 97, 0},
			parts: []part{{2, "slice 4: ranges of its two blocks"}, {1, "slice 5: range of its one block, unknown"}},
		},
		{
			name: "diff", about: "the answer for slice 5 of exchange 7",
			header:  Header{Type: TypeDiff, Exchange: 7, Slice: 5},
			payload: append(AppendDiffInfo(nil, DiffInfo{SquaredDistance: 0.25}), values...),
			parts:   []part{{8, "squared distance: 0.25"}, {12, "the codec's bytes (here float32: 1, -2, 0.5)"}},
		},
		{
			name: "ack", about: "the first six slices of a lane of exchange 7 have been applied",
			header: Header{Type: TypeAck, Exchange: 7, Ack: 6}, payload: []byte{},
		},
		{
			name: "status", about: "the passive peer asks what became of three slices of exchange 7",
			header: Header{Exchange: 7}, message: Status{Incarnation: 2, Slices: []uint32{5, 6, 11}},
			parts: []part{
				{8, "incarnation of the peer that is asked: 2"}, {1, "number of slices"},
				{4, "slice: 5"}, {4, "slice: 6"}, {4, "slice: 11"},
			},
		},
		{
			name: "settled", about: "slices 5 and 11 have been applied, slice 6 has not and never will be",
			header: Header{Exchange: 7}, message: Settled{Known: true, Applied: 0b101},
			parts: []part{{1, "known: 1, yes"}, {8, "applied: bits 0 and 2"}},
		},
		{
			name: "settled-unknown", about: "nobody can tell any more what has been applied",
			header: Header{Exchange: 7}, message: Settled{},
			parts: []part{{1, "known: 0, no"}, {8, "applied: 0"}},
		},
		{
			name: "control", about: "an operator pauses a run",
			message: controlSample(),
			parts: append(append([]part{{1, "kind: 2, hold"}, {8, "sequence: 3"}, {8, "flock's step: 0"}}, run...),
				part{1, "length of the author's id"}, part{8, "author: \"operator\""}, part{2, "length of the body: 7"},
				part{1, "paused: 1, yes"}, part{1, "length of the reason"}, part{5, "reason: \"lunch\""}, part{64, "signature"}),
		},
		{
			name: "state-request", about: "a late joiner asks for the parameters",
			message: StateRequest{Run: "digits", Layout: layoutHash(), Steps: 910},
			parts:   append([]part{layout, {8, "at least so many steps: 910"}}, run...),
		},
		{
			name: "manifest", about: "its answer: 203,530 values in 13 slices",
			message: Manifest{
				Run: "digits", Layout: layoutHash(), Server: "12D3KooW", Incarnation: 2, Steps: 1040, FlockSteps: 4160,
				Values: 203530, SliceLen: 16384, Signature: []byte{0xaa, 0xbb, 0xcc},
			},
			parts: append(append([]part{
				layout, {8, "incarnation: 2"}, {8, "steps: 1040"}, {8, "flock's steps: 4160"},
				{8, "values: 203530"}, {4, "values per slice: 16384"},
				{1, "length of the donor's id"}, {8, "donor: \"12D3KooW\""},
			}, run...), part{1, "length of the signature"}, part{3, "signature (here three bytes)"}),
		},
		{
			name: "state-hashes", about: "the hashes of the two slices that are asked for, and come next",
			message: StateHashes{Signature: []byte{0xaa, 0xbb, 0xcc}, Hashes: slices.Repeat([]byte{0x5a}, 2*HashSize)},
			parts: []part{
				{1, "length of the signature"}, {3, "signature (here three bytes)"}, {2, "hashes: 2"},
				{32, "SHA-256 of the first slice"}, {32, "SHA-256 of the second"},
			},
		},
		{
			name: "state-want", about: "slices 4 to 11 are asked for",
			message: StateWant{First: 4, Count: 8}, parts: []part{{4, "first slice: 4"}, {4, "slices: 8"}},
		},
		{
			name: "state-slice", about: "the last slice of a state",
			header: Header{Type: TypeStateSlice, Slice: 12}, payload: values,
			parts: []part{{12, "float32: 1, -2, 0.5"}},
		},
	}, append(append(append(transferVectors(), sumVectors()...), rowsVectors()...), append(append(valuesVectors(), stagesVectors()...), memberVector())...)...)
}

// headerParts describes every frame's header.
func headerParts(frame []byte, h Header) []part {
	return []part{
		{2, "magic: \"Mu\""}, {1, fmt.Sprintf("version: %d", frame[atVersion])},
		{1, fmt.Sprintf("type: %d, %v", frame[atType], h.Type)}, {4, "flags"},
		{8, fmt.Sprintf("exchange: %d", h.Exchange)}, {4, fmt.Sprintf("slice: %d", h.Slice)},
		{4, fmt.Sprintf("ack: %d", h.Ack)}, {4, "payload's length"},
		{4, "CRC32C of the 28 bytes before and the payload"},
	}
}

// build seals the vector's frame.
func (v vector) build(t testing.TB) ([]byte, Header) {
	t.Helper()
	h := v.header
	if v.message != nil {
		h.Type = v.message.Type()
		frame, err := Pack(nil, h.Exchange, v.message)
		if err != nil {
			t.Fatal(err)
		}
		return frame, h
	}
	frame := append(Reserve(nil), v.payload...)
	if err := Seal(frame, h); err != nil {
		t.Fatal(err)
	}
	return frame, h
}

// annotate writes bytes as hex, a part after the other, each with its note.
func annotate(title string, data []byte, parts []part) string {
	const perLine = 16
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", title)
	for _, p := range parts {
		note := p.note
		for size := p.size; size > 0; {
			n := min(size, perLine)
			line := fmt.Sprintf("% x", data[:n])
			if note != "" {
				line = fmt.Sprintf("%-*s # %s", 3*perLine-1, line, note)
			}
			fmt.Fprintln(&b, line)
			data, size, note = data[n:], size-n, ""
		}
	}
	if len(data) > 0 {
		fmt.Fprintf(&b, "% x # NOT DESCRIBED\n", data)
	}
	return b.String()
}

// load reads the bytes of a vector, comments aside.
func load(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectorFolder, name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	data, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return data
}

func store(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(vectorFolder, name+".hex"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The stored bytes are what the code writes, and reading them gives the values
// that the code wrote.
func TestVectors(t *testing.T) {
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			frame, header := v.build(t)
			if *update {
				store(t, v.name, annotate(v.about, frame, append(headerParts(frame, header), v.parts...)))
			}
			stored := load(t, v.name)
			if !bytes.Equal(stored, frame) {
				t.Fatalf("the code writes\n% x\nbut the vector is\n% x", frame, stored)
			}
			got, payload, err := NewReader(bytes.NewReader(stored), 0).Next()
			if err != nil {
				t.Fatal(err)
			}
			if got != header {
				t.Errorf("header is %+v, want %+v", got, header)
			}
			if v.message == nil {
				if !bytes.Equal(payload, v.payload) {
					t.Errorf("payload is % x, want % x", payload, v.payload)
				}
				return
			}
			if m, err := messageDecoders()[header.Type](payload); err != nil || !reflect.DeepEqual(m, v.message) {
				t.Errorf("message is %+v (%v), want %+v", m, err, v.message)
			}
		})
	}
}

// refusedVector is a frame that every reader must refuse.
type refusedVector struct {
	name, about string
	edit        func(frame []byte) []byte
	err         error
}

// resealed edits a frame and then corrects its checksum, so that the edit itself
// is what is refused.
func resealed(edit func(frame []byte)) func([]byte) []byte {
	return func(frame []byte) []byte {
		edit(frame)
		fixChecksum(frame)
		return frame
	}
}

func refusedVectors() []refusedVector {
	set := func(at int, value byte) func([]byte) { return func(f []byte) { f[at] = value } }
	return []refusedVector{
		{"refused-magic", "other magic", resealed(set(0, 'm')), ErrMagic},
		{"refused-version", "wire version 2", resealed(set(atVersion, 2)), ErrVersion},
		{"refused-flags", "a flag that must be understood", resealed(set(atFlags, 1)), ErrFlags},
		{"refused-type", "a type that is not assigned", resealed(set(atType, 14)), ErrType},
		{"refused-length", "an ACK with a payload", func(f []byte) []byte {
			f = append(f, 0)
			f[atLength] = 1
			fixChecksum(f)
			return f
		}, ErrTooLong},
		{"refused-checksum", "a bit has flipped in the field ack", func(f []byte) []byte {
			f[atAck] ^= 1
			return f
		}, ErrChecksum},
		{"refused-truncated", "the stream ends before the last byte", func(f []byte) []byte {
			return f[:len(f)-1]
		}, ErrTruncated},
	}
}

// build spoils an ACK.
func (v refusedVector) build(t testing.TB) []byte {
	t.Helper()
	return v.edit(seal(t, Header{Type: TypeAck, Exchange: 7, Ack: 6}, nil))
}

func TestRefusedVectors(t *testing.T) {
	for _, v := range refusedVectors() {
		t.Run(v.name, func(t *testing.T) {
			frame := v.build(t)
			if *update {
				title := fmt.Sprintf("refused (%v): %s", v.err, v.about)
				store(t, v.name, annotate(title, frame, []part{{len(frame), ""}}))
			}
			stored := load(t, v.name)
			if !bytes.Equal(stored, frame) {
				t.Fatalf("the code makes\n% x\nbut the vector is\n% x", frame, stored)
			}
			if _, _, err := NewReader(bytes.NewReader(stored), 0).Next(); !errors.Is(err, v.err) {
				t.Errorf("error is %v, want %v", err, v.err)
			}
		})
	}
}

// A stored vector that no test reads would rot.
func TestEveryVectorIsTested(t *testing.T) {
	known := map[string]bool{}
	for _, v := range vectors() {
		known[v.name+".hex"] = true
	}
	for _, v := range refusedVectors() {
		known[v.name+".hex"] = true
	}
	files, err := os.ReadDir(vectorFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s is in %s, but no test reads it", f.Name(), vectorFolder)
		}
	}
}

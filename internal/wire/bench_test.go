package wire

import (
	"bytes"
	"io"
	"testing"
)

// benchPayload is a slice of 16,384 float32 values.
const benchPayload = 64 << 10

// endless gives the same bytes over and over.
type endless struct {
	data []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.at:])
	e.at = (e.at + n) % len(e.data)
	return n, nil
}

// sender returns a step that builds and seals a frame in the same buffer.
func sender(t testing.TB) func() {
	payload := bytes.Repeat([]byte{0x5a}, benchPayload-InfoSize)
	buf := make([]byte, 0, HeaderSize+benchPayload)
	return func() {
		frame := AppendCodeInfo(Reserve(buf), CodeInfo{Bound: 1})
		frame = append(frame, payload...)
		if err := Seal(frame, Header{Type: TypeCode, Exchange: 7, Slice: 5}); err != nil {
			t.Fatal(err)
		}
	}
}

// sealer returns a step that only seals a frame.
func sealer(t testing.TB) func() {
	frame := append(Reserve(nil), make([]byte, benchPayload)...)
	return func() {
		if err := Seal(frame, Header{Type: TypeCode, Exchange: 7, Slice: 5}); err != nil {
			t.Fatal(err)
		}
	}
}

// receiver returns a step that reads a frame and splits it.
func receiver(t testing.TB) func() {
	payload := append(AppendCodeInfo(nil, CodeInfo{Bound: 1}), make([]byte, benchPayload-InfoSize)...)
	var source io.Reader = &endless{data: seal(t, Header{Type: TypeCode, Slice: 5}, payload)}
	r := NewReader(source, 0)
	return func() {
		_, payload, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := SplitCode(payload); err != nil {
			t.Fatal(err)
		}
	}
}

// copier returns a step that copies a payload: the speed of memory, to compare.
func copier(testing.TB) func() {
	from, to := make([]byte, benchPayload), make([]byte, benchPayload)
	return func() { copy(to, from) }
}

func BenchmarkSeal(b *testing.B) { bench(b, sealer(b)) }
func BenchmarkSend(b *testing.B) { bench(b, sender(b)) }
func BenchmarkNext(b *testing.B) { bench(b, receiver(b)) }
func BenchmarkCopy(b *testing.B) { bench(b, copier(b)) }

func bench(b *testing.B, step func()) {
	step()
	b.ReportAllocs()
	b.SetBytes(benchPayload)
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(benchPayload)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, step := range map[string]func(){
		"Seal": sealer(t), "Reserve, append, Seal": sender(t), "Next": receiver(t),
	} {
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%s allocates %v times per frame", name, n)
		}
	}
}

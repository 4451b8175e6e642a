package exchange

import (
	"testing"

	"github.com/google/pprof/profile"
)

// stack is a sample of functions, the innermost first.
func stack(functions ...string) *profile.Sample {
	s := &profile.Sample{}
	for _, name := range functions {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
	}
	return s
}

// TestStageOf shows that a sample is of the innermost stage of its stack.
func TestStageOf(t *testing.T) {
	const replica, talks = ours + "internal/replica.", ours + "internal/conversations."
	for want, functions := range map[string][]string{
		"encode":                     {ours + "internal/kernel.latticeEncode", ours + "internal/coding.Lattice.Encode", replica + "(*InitiatorLane).encode", replica + "(*InitiatorLane).Code", talks + "(*Ongoing).write"},
		"checksum":                   {"hash/crc32.castagnoliSSE42", ours + "internal/wire.Seal", replica + "(*InitiatorLane).Code"},
		"decode, apply":              {ours + "tensor.Add", replica + "(*Replica).commit", replica + "(*ResponderLane).Ack", replica + "(*ResponderLane).Code"},
		"decode, difference, encode": {replica + "(*ResponderLane).answer", replica + "(*ResponderLane).Code"},
		"TLS":                        {"runtime.memmove", "crypto/tls.(*halfConn).encrypt", "github.com/libp2p/go-yamux/v5.(*Session).sendLoop"},
		"system":                     {"internal/runtime/syscall.Syscall6", "syscall.write", "crypto/tls.(*Conn).write"},
		"muxer":                      {"runtime.memmove", "github.com/libp2p/go-yamux/v5.(*Stream).Read", ours + "peer/p2pnet.(*stream).Read"},
		"conversation":               {"runtime.memmove", ours + "internal/framed.(*Stream).Later", talks + "(*Ongoing).write"},
		otherStage:                   {"runtime.findRunnable", "runtime.schedule"},
	} {
		if got := stageOf(stack(functions...)); got != want {
			t.Errorf("%v is of %q, want %q", functions, got, want)
		}
	}
}

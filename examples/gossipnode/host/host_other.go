//go:build !linux

package host

import "net"

// Other systems tell these figures otherwise or not at all: they are left out.

// Processor is the architecture of this machine's processor.
func Processor() string { return unknownProcessor() }

// PeakMemory is 0: not known.
func PeakMemory() (uint64, error) { return 0, nil }

// Memory is 0: not known.
func Memory() uint64 { return 0 }

// ProcessorSeconds is 0: not known.
func ProcessorSeconds() float64 { return 0 }

// CongestionControl is not known.
func CongestionControl(*net.TCPConn) (string, error) { return "unknown", nil }

//go:build !linux

package host

import "net"

// Other systems are not supported: all figures are unknown.

// Processor is the architecture of this machine's processor.
func Processor() string { return unknownProcessor() }

// PeakMemory is 0: unknown.
func PeakMemory() (uint64, error) { return 0, nil }

// Memory is 0: unknown.
func Memory() uint64 { return 0 }

// ProcessorSeconds is 0: unknown.
func ProcessorSeconds() float64 { return 0 }

// CongestionControl is unknown.
func CongestionControl(*net.TCPConn) (string, error) { return "unknown", nil }

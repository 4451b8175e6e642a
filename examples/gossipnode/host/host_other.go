//go:build !linux

package host

import "net"

// Other systems tell these figures otherwise or not at all: they are left out.

func Processor() string { return unknownProcessor() }

func PeakMemory() (uint64, error) { return 0, nil }

func ProcessorSeconds() float64 { return 0 }

func CongestionControl(*net.TCPConn) (string, error) { return unknownAlgorithm, nil }

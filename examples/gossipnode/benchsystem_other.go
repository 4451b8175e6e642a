//go:build !linux

package main

import "net"

// Other systems tell these figures otherwise or not at all: they are left out.

func processorName() string { return unknownProcessor() }

func peakMemory() (uint64, error) { return 0, nil }

func processorSeconds() float64 { return 0 }

func congestionControl(*net.TCPConn) (string, error) { return unknownAlgorithm, nil }

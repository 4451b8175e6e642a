package host

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Processor is the model name of this machine's processor.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknownProcessor()
	}
	if name, ok := fieldOf(text, "model name"); ok {
		return name
	}
	return unknownProcessor()
}

// fieldOf is the value in the first line "name : value" of a file of /proc.
func fieldOf(text []byte, name string) (value string, ok bool) {
	for line := range bytes.Lines(text) {
		if key, value, found := strings.Cut(string(line), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// PeakMemory is the peak resident memory of this process, in bytes.
func PeakMemory() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the peak memory: %w", err)
	}
	value, _ := fieldOf(text, "VmHWM")
	kilobytes, err := strconv.ParseUint(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the peak memory: VmHWM is %q: %w", value, err)
	}
	return kilobytes << 10, nil
}

// Memory is how much memory this process may use, in bytes: that of this machine or of its control group; 0 if
// unknown.
func Memory() uint64 {
	text, _ := os.ReadFile("/proc/meminfo")
	value, _ := fieldOf(text, "MemTotal")
	most, _ := strconv.ParseUint(strings.TrimSuffix(value, " kB"), 10, 64)
	most <<= 10
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, _ := os.ReadFile(file) // in a container; "max" is not a number
		if given, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && given < most {
			most = given
		}
	}
	return most
}

// ProcessorSeconds is the processor time that this process has used.
func ProcessorSeconds() float64 {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0 // never happens for RUSAGE_SELF
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// CongestionControl names a connection's congestion control algorithm.
func CongestionControl(conn *net.TCPConn) (name string, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", fmt.Errorf("asking for the congestion control: %w", err)
	}
	var optionErr error
	err = raw.Control(func(fd uintptr) {
		name, optionErr = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	if err == nil {
		err = optionErr
	}
	if err != nil {
		return "", fmt.Errorf("asking for the congestion control: %w", err)
	}
	return name, nil
}

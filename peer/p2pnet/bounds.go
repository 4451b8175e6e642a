package p2pnet

import (
	"fmt"
	"time"
)

// Limits are what a process holds at most. The zero value is right for a flock of
// some hundred members, many of them behind one address. docs/design/019 tells what
// each stands against.
type Limits struct {
	// Memory is how many bytes all streams together may buffer; one peer gets at
	// most a quarter. It is reserved as windows are granted (1 MiB for a stream to
	// begin with), and used only when somebody sends faster than the handler reads.
	// Zero is DefaultMemory.
	Memory int64
	// Connections is how many may be open, in both directions and lanes included.
	// Above half of it, those without a stream are closed. A membership over streams
	// takes one for each member. Zero is DefaultConnections.
	Connections int
	// PerAddress is how many one IPv4 address or one IPv6 /56 may have open: the
	// members behind one NAT, or in the containers of one machine. Zero is
	// DefaultPerAddress.
	PerAddress int
	// Streams is how many of one protocol a peer may have open here. An exchange
	// takes one and a few lanes, membership a few short ones. Zero is DefaultStreams.
	Streams int
	// Idle is how long a connection is kept that carries no stream; it is closed
	// within one and a half times that. Zero is DefaultIdle.
	Idle time.Duration
}

// Defaults of Limits.
const (
	// DefaultMemory is enough for a thousand streams at their initial window.
	DefaultMemory      = 1 << 30
	DefaultConnections = 2048
	DefaultPerAddress  = 1024
	DefaultStreams     = 64
	DefaultIdle        = time.Minute
)

// minMemory is the least Limits.Memory that lets a handful of streams exist.
const minMemory = 64 << 20

// connectionGrace is the age before which no connection is closed to make room.
const connectionGrace = time.Minute

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Connections == 0 {
		l.Connections = DefaultConnections
	}
	if l.PerAddress == 0 {
		l.PerAddress = min(DefaultPerAddress, l.Connections)
	}
	if l.Streams == 0 {
		l.Streams = DefaultStreams
	}
	if l.Idle == 0 {
		l.Idle = DefaultIdle
	}
	return l
}

// faults are all that is wrong with limits that have their defaults.
func (l Limits) faults() (faults []error) {
	if l.Memory < minMemory {
		faults = append(faults, fmt.Errorf("Limits.Memory %d bytes is less than %d", l.Memory, int64(minMemory)))
	}
	if l.Connections < 1 || l.PerAddress < 1 || l.Streams < 1 {
		faults = append(faults, fmt.Errorf("Limits.Connections %d, PerAddress %d and Streams %d: none may be negative", l.Connections, l.PerAddress, l.Streams))
	}
	if l.Idle < 0 {
		faults = append(faults, fmt.Errorf("Limits.Idle %v is negative", l.Idle))
	}
	return faults
}

// handshakes is how many connections of others may wait for a key to be shown, and
// strangers how many may be open with peers that are no members: door.go.
func (l Limits) handshakes() int { return max(1, min(maxHandshakes, l.Connections/8)) }
func (l Limits) strangers() int  { return max(1, l.Connections/4) }

// high is the number of connections above which idle ones are closed, and low how
// many are left then.
func (l Limits) high() int { return max(1, l.Connections/2) }
func (l Limits) low() int  { return max(1, l.Connections*3/8) }

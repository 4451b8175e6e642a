// Package host reads what the system knows of this machine and this process: the processor's name, processor time,
// peak memory, and the congestion control of a connection.
//
// Limits: only Linux is supported. On other systems the processor has the name of its architecture, the algorithm is
// "unknown", and figures are 0, which means unknown.
package host

import "runtime"

// unknownProcessor is the name of a processor that the system does not tell.
func unknownProcessor() string { return runtime.GOARCH }

// Package host tells what the system knows of this machine and this process: the
// processor's name, processor time, peak memory, and how a connection is paced.
//
// Limits: only Linux is asked. Elsewhere the processor has the name of its
// architecture, the algorithm is "unknown", and the figures are 0, which stands for
// "not known".
package host

import "runtime"

// What stands for a name that the system does not tell.
func unknownProcessor() string { return runtime.GOARCH }

package baseline

import "fmt"

// Version names the parameters of a peer: where they are the same, the models are.
func (o *office) Version() string { return fmt.Sprintf("%x/%d", o.lineage, o.round) }

// Round is how many updates the parameters are of.
func (o *office) Round() uint64 { return o.round }

// Clock is how many pushes of a worker have been answered.
func (m *ParamServer) Clock() uint64 { return m.clock }

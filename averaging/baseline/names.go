package baseline

import "github.com/seed-97356399/murmuration/averaging"

// Algorithm implements averaging.Named.
func (m *AllReduce) Algorithm() averaging.Algorithm { return averaging.NameAllReduce }

// Algorithm implements averaging.Named. Whatever their gates, it is the server's that
// counts.
func (m *ParamServer) Algorithm() averaging.Algorithm { return averaging.NameParamServer }

// Algorithm implements averaging.Named.
func (m *DPSGD) Algorithm() averaging.Algorithm { return averaging.NameDPSGD }

// Algorithm implements averaging.Named.
func (Alone) Algorithm() averaging.Algorithm { return averaging.NameAlone }

// Algorithm implements averaging.Named: it is that of the machine inside.
func (m *Merge) Algorithm() averaging.Algorithm { return averaging.AlgorithmOf(m.inner) }

package averaging

// Algorithm names what a machine does, for peers to tell others whose machine theirs
// cannot work with.
type Algorithm uint8

// The algorithms of this module. Others have no name, and are not compared. Numbers are
// told to other peers: they stay as they are, and are below MaxAlgorithm.
const (
	Unnamed Algorithm = iota
	NameADPSGD
	NameDPSGD
	NameAllReduce
	NameParamServer
	NameAlone
	// MaxAlgorithm bounds the numbers of algorithms.
	MaxAlgorithm = 1 << 4
)

// String names the algorithm as logs show it.
func (a Algorithm) String() string {
	switch a {
	case NameADPSGD:
		return "AD-PSGD"
	case NameDPSGD:
		return "D-PSGD"
	case NameAllReduce:
		return "AllReduce"
	case NameParamServer:
		return "a parameter server"
	case NameAlone:
		return "training alone"
	}
	return "an algorithm without a name"
}

// Named is a machine that says what it does.
type Named interface {
	Algorithm() Algorithm
}

// AlgorithmOf is what a machine does, Unnamed if it does not say.
func AlgorithmOf(m Machine) Algorithm {
	if named, ok := m.(Named); ok {
		return named.Algorithm()
	}
	return Unnamed
}

// Algorithm implements Named.
func (m *ADPSGD) Algorithm() Algorithm { return NameADPSGD }

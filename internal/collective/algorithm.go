package collective

// Algorithm names what a machine does, for peers to tell others whose machine theirs
// cannot work with.
type Algorithm uint8

// The algorithms of this module. Others have no name, and are not compared. Numbers are
// told to other peers: they stay as they are, and are below MaxAlgorithm.
const (
	Unnamed Algorithm = iota
	ADPSGD
	DPSGD
	AllReduce
	ParamServer
	Alone
	// MaxAlgorithm bounds the numbers of algorithms.
	MaxAlgorithm = 1 << 4
)

// String names the algorithm as logs show it.
func (a Algorithm) String() string {
	switch a {
	case ADPSGD:
		return "AD-PSGD"
	case DPSGD:
		return "D-PSGD"
	case AllReduce:
		return "AllReduce"
	case ParamServer:
		return "a parameter server"
	case Alone:
		return "training alone"
	}
	return "an algorithm without a name"
}

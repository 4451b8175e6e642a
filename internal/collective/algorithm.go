package collective

// Algorithm names the algorithm of a machine, so that peers recognise others with an
// incompatible machine.
type Algorithm uint8

// The algorithms of this module. Others have no number, and are not compared. The numbers
// are sent to other peers: they never change, and are below MaxAlgorithm.
const (
	Unnamed Algorithm = iota
	ADPSGD
	_ // D-PSGD that averaged models after the step, of earlier releases
	_ // AllReduce round a ring, of earlier releases
	ParamServer
	Alone
	AllReduce
	DiLoCo
	DPSGD
	// Serving is in the place of the algorithm's number in what a member tells that serves parameters and does not train.
	Serving = MaxAlgorithm - 1
	// MaxAlgorithm bounds the numbers of algorithms. The number itself means a member that
	// does not train.
	MaxAlgorithm = 1<<4 - 1
)

// String names the algorithm as logs show it.
func (a Algorithm) String() string {
	if int(a) >= len(algorithmNames) || algorithmNames[a] == "" {
		return "an algorithm without a name"
	}
	return algorithmNames[a]
}

var algorithmNames = [...]string{
	ADPSGD:      "AD-PSGD",
	DPSGD:       "D-PSGD",
	AllReduce:   "AllReduce",
	ParamServer: "a parameter server",
	Alone:       "training alone",
	DiLoCo:      "DiLoCo",
}

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
	// MaxAlgorithm bounds the numbers of algorithms: in their place, the record of a member that does not train has
	// one from here on.
	MaxAlgorithm = 1<<4 - 2
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

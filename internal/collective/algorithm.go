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
	_ // AllReduce round a ring, of releases before
	ParamServer
	Alone
	AllReduce
	// MaxAlgorithm bounds the numbers of algorithms. The number itself is that of a member
	// that does not train.
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
}

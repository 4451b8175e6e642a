package archtest

// module is the path that our own imports begin with.
const module = "github.com/seed-97356399/murmuration"

// room is a rule for one folder: what it may import of ours, and why no more.
// Folders are relative to the module; one that ends in "/..." stands for itself
// and everything below it.
type room struct {
	folder string
	may    []string
	why    string
}

var rooms = []room{
	{"internal/kernel", nil,
		"kernels are loops over float32 slices; everything else stands on them"},
	{"topology", nil,
		"who neighbours whom follows from the members alone"},
	{"internal/wire", nil,
		"frames are bytes and limits; a leaf can be fuzzed and versioned by itself"},
	{"peer/seam", nil,
		"adapters and peer both import the seam, so it can import neither"},
	{"internal/loglimit", nil,
		"a log is limited by the messages and partners of its lines alone (docs/design/029)"},
	{"internal/archtest", nil,
		"the checker reads files; importing what it checks would tie it to one build"},

	{"tensor", []string{"internal/kernel"},
		"vectors know arithmetic, not what they are used for"},
	{"tensor/nn", []string{"tensor", "internal/kernel"},
		"operations of networks are arithmetic on vectors; models and data are the service's"},
	{"quant", []string{"tensor", "internal/kernel"},
		"a codec turns slices into bytes; who sends them, and when, is not its business"},
	{"averaging", []string{"topology"},
		"a machine sees peers, steps and chunk numbers, never a vector or a byte"},
	{"averaging/baseline", []string{"averaging", "topology"},
		"a rival is a machine like any other"},
	{"internal/replica", []string{"averaging", "quant", "tensor", "internal/wire"},
		"the replica carries out actions; it must run the same in a network and in simulation"},
	{"internal/sim", []string{"averaging", "internal/replica", "internal/wire", "topology"},
		"the simulated world drives machines and replicas, which speak in real frames (docs/design/009)"},

	{"peer/p2pnet", []string{"peer/seam", "internal/loglimit"},
		"an adapter knows the seam and its one library, and limits the log that it is given"},
	{"peer/swim", []string{"peer/seam", "internal/loglimit"},
		"an adapter knows the seam and its one library, and limits the log that it is given"},
	{"peer/memnet", []string{"peer/seam"},
		"an adapter knows the seam and its one library"},
	{"peer", append([]string{"peer/seam", "peer/p2pnet", "peer/swim", "internal/loglimit"}, below...),
		"the runtime joins everything below with its default adapters, and knows no test network"},
	{"peer/peertest", append([]string{"peer", "peer/seam", "peer/memnet", "peer/p2pnet", "peer/swim"}, below...),
		"the harness may use all that it puts together"},

	{"examples/...", []string{
		"tensor", "tensor/nn", "quant", "topology", "averaging", "averaging/baseline",
		"peer", "peer/seam", "peer/p2pnet", "peer/swim", "peer/memnet", "peer/peertest",
		"examples/...",
	}, "examples show what a user can write, so they import public packages only"},
}

// below are the packages below peer.
var below = []string{
	"internal/kernel", "internal/wire", "internal/replica", "internal/sim",
	"tensor", "tensor/nn", "quant", "topology", "averaging", "averaging/baseline",
}

// keeper is a rule for one outside library: the only rooms that import it.
type keeper struct {
	library string // an import path, and all below it
	rooms   []string
	why     string
}

var keepers = []keeper{
	{"github.com/libp2p", []string{"peer/p2pnet"},
		"libp2p stays replaceable behind peer/seam"},
	{"github.com/multiformats", []string{"peer/p2pnet"},
		"multiaddrs are libp2p's address form; elsewhere an address is a string"},
	{"github.com/hashicorp/memberlist", []string{"peer/swim"},
		"memberlist stays replaceable behind peer/seam"},
	{"github.com/spf13", []string{"examples/..."}, noTools},
	{"go.yaml.in/yaml", []string{"examples/..."}, noTools},
	{"gopkg.in/yaml.v3", []string{"examples/..."}, noTools},
	{"github.com/prometheus", []string{"examples/..."}, noTools},
	{"gonum.org/v1/plot", []string{"examples/..."}, noTools},
}

const noTools = "a service that embeds peer asks for no command-line, plotting or metrics library of ours"

// The reasons of the bans below peer.
const (
	noWorld  = "packages below peer reach no socket, file or log: the runtime does, and a simulation has none"
	noClock  = "packages below peer take time as an argument, so that virtual time is as good as real time"
	noChance = "packages below peer take randomness as an argument, so that a seed replays a run"
	noLocks  = "packages below peer are pure and their caller serialises them; only internal/replica has slice locks, and tensor and internal/sim fork and join inside one call"
	noForks  = "packages below peer start nothing: only tensor and internal/sim fork, and join inside the same call"
)

// bannedImports may not be imported below peer, nor may anything below them.
var bannedImports = []struct {
	path   string
	except []string
	why    string
}{
	{"net", nil, noWorld},
	{"os", nil, noWorld},
	{"log", nil, noWorld},
	{"go.uber.org/zap", nil, noWorld},
	{"syscall", nil, noWorld},
	{"crypto/rand", nil, noChance},
	{"sync", []string{"internal/replica", "tensor", "internal/sim"}, noLocks},
}

// forkers may use go statements and channels, within one call.
var forkers = []string{"tensor", "internal/sim"}

// clocks are the names of package time that read or start a clock.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// sources are the names of math/rand and math/rand/v2 that make or name a source
// of the caller's own; all others draw from the global one.
var sources = []string{
	"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf",
	"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

// maxLines bounds a file, tests included; generated files (_gen.go) may be longer.
const maxLines = 400

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
	{"peer/transport", []string{"topology"},
		"adapters and peer both import package transport, so it can import neither; a peer has one name everywhere"},
	{"internal/loglimit", nil,
		"a log is limited by the messages and partners of its lines alone (docs/design/029)"},
	{"internal/atomicfile", nil,
		"a file that must survive a crash is written the same way, whatever it holds"},
	{"internal/filelock", nil,
		"a file is locked the same way, whatever it stands for"},
	{"internal/idle", nil,
		"what is kept for its next use is kept the same way, whatever it is"},
	{"internal/ewma", nil,
		"a running mean is arithmetic"},
	{"internal/handout", []string{"peer/stats"},
		"who gets which rows follows from numbers of rows, what takers tell, and a seed; what the rows hold is not its business (docs/design/044)"},
	{"internal/stages", []string{"topology"},
		"where a micro-batch goes follows from names and times; what it holds is not its business (docs/design/058)"},
	{"internal/tasks", nil,
		"who closes waits for goroutines the same way, whatever they do"},
	{"internal/archtest", nil,
		"the checker reads files; importing what it checks would tie it to one build"},

	{"tensor", []string{"internal/kernel"},
		"vectors know arithmetic, not what they are used for"},
	{"internal/ops", []string{"tensor", "internal/kernel"},
		"operations of networks are arithmetic on vectors; what layers are made of them stands above"},
	{"tensor/nn", []string{"tensor", "internal/idle", "internal/kernel", "internal/ops"},
		"models are layers over operations on vectors; data are the service's"},
	{"internal/coding", []string{"tensor", "internal/kernel"},
		"a codec turns slices into bytes; who sends them, and when, is not its business"},
	{"quant", []string{"tensor", "internal/coding"},
		"what users name and write about codecs; the machinery stands below it"},
	{"averaging", []string{"topology"},
		"a machine sees peers, steps and chunk numbers, never a vector or a byte"},
	{"internal/collective", []string{"averaging", "topology", "internal/sums", "internal/wire"},
		"what rivals and the merge say beside exchanges, sums among it, which are one machine's (design/041); a user's machine, in averaging, knows nothing of it"},
	{"averaging/baseline", []string{"averaging", "internal/collective", "topology"},
		"a rival is a machine like any other"},
	{"averaging/merge", []string{"averaging", "internal/collective", "topology"},
		"the final merge is a machine like any other; a rival it is not"},
	{"internal/harm", nil,
		"whether a partner does harm follows from what exchanges move and what steps do; whose numbers they are is not its business (docs/design/042)"},
	{"internal/replica", []string{"averaging", "internal/collective", "internal/coding", "internal/harm", "tensor", "internal/wire"},
		"the replica carries out actions; it must run the same in a network and in simulation"},
	{"internal/links", []string{"quant", "internal/coding", "topology"},
		"how a partner is met follows from what exchanges with it have shown; network and simulation ask alike"},
	{"internal/admit", []string{"internal/framed", "internal/wire", "peer/transport"},
		"who takes part follows from a list, a key and what peers show; whose peers they are is not its business"},
	{"internal/trainer", []string{"averaging", "internal/collective", "internal/replica", "peer/optim", "tensor", "internal/ewma"},
		"one trainer makes the steps of a real peer and of a simulated one; it knows no flock, only what it is told of it"},
	{"internal/session", []string{"averaging", "internal/coding", "internal/collective", "internal/links", "internal/replica", "internal/wire", "tensor", "topology"},
		"a conversation is frames and time in, frames and an end out: network and simulation drive the same one"},
	{"internal/sim", []string{"averaging", "internal/collective", "internal/links", "internal/replica", "internal/session", "internal/stages", "internal/trainer", "peer/optim", "internal/wire", "topology"},
		"the simulated world drives machines and replicas, which speak in real frames (docs/design/009)"},

	{"internal/mask", []string{"peer/transport"},
		"what hides numbers in a sum is arithmetic on keys and names; who sends what is not its business (docs/design/043)"},
	{"internal/sums", []string{"internal/mask", "internal/wire", "topology"},
		"who takes part in a sum, and when it counts, follows from what members say; over which streams is not its business"},
	{"internal/mail", []string{"internal/framed", "internal/idle", "internal/requests", "internal/tasks", "internal/wire", "peer/transport"},
		"one-way messages go over streams the same way, whatever they say (docs/design/037)"},
	{"internal/sumnet", []string{"internal/framed", "internal/mail", "internal/mask", "internal/requests", "internal/sums", "internal/wire", "peer/transport"},
		"what the machine of sums decides is carried over streams the same way, whatever is summed"},
	{"internal/until", []string{"internal/wire", "topology"},
		"when a run is good enough follows from what members tell, and time; who evaluates what is not its business (docs/design/048)"},
	{"internal/orderlog", []string{"internal/framed", "internal/wire", "peer/transport"},
		"which of an operator's messages count follows from their kinds, numbers and bytes"},
	{"peer/control", []string{"internal/admit", "internal/orderlog", "internal/until", "internal/wire", "peer/optim/rate", "peer/stats", "peer/transport", "topology"},
		"an operator's program embeds no peer"},
	{"internal/orders", []string{"averaging", "internal/framed", "internal/requests", "internal/orderlog", "internal/wire", "peer/control", "peer/optim/rate", "peer/transport", "peer/stats"},
		"whom a peer obeys, and what it tells of itself, follows from messages; it acts on nothing but its own state"},
	{"peer/optim/rate", nil,
		"a learning rate is arithmetic on numbers; who tells it to others has no vectors"},
	{"peer/optim", []string{"peer/optim/rate", "tensor"},
		"optimizers and schedules are arithmetic on vectors and numbers; whose steps they make is not their business"},
	{"internal/framed", []string{"internal/wire", "peer/transport"},
		"what every conversation of a peer stands on: frames over the streams of package transport, whatever they say"},
	{"internal/requests", []string{"internal/framed", "internal/idle", "internal/counters", "internal/wire", "peer/transport"},
		"requests are made, answered and counted the same way, whatever is asked"},
	{"internal/pushpull", []string{"averaging", "internal/collective", "internal/framed", "internal/replica", "internal/requests", "internal/wire", "peer/transport", "tensor"},
		"it moves values between streams and the replica; who serves is the machine's to say (docs/design/051)"},
	{"internal/stateserver", []string{"internal/flock", "internal/framed", "internal/replica", "internal/requests", "internal/wire", "peer/transport", "tensor"},
		"the state server gives slices of the replica, and says what the flock has done"},
	{"internal/arrival", []string{"internal/admit", "internal/atomicfile", "internal/copying", "internal/flock", "internal/framed", "internal/replica", "internal/requests", "internal/tasks", "internal/wire", "peer/description", "peer/transport", "peer/stats"},
		"one comes by a hello, the membership and a copy; what follows from having come is the peer's"},
	{"internal/copying", []string{"internal/ewma", "internal/flock", "internal/framed", "internal/wire", "peer/transport", "peer/stats", "tensor"},
		"a copy is values from members who sign them; the peer decides whether it wants one, and what becomes of it"},

	{"peer/p2pnet/internal/acceptlimit", nil,
		"which connection is ended for another follows from addresses and ages alone"},
	{"peer/p2pnet/internal/secure", nil,
		"the TLS of connections knows bytes and keys, no peer of ours"},
	{"peer/p2pnet", []string{"peer/transport", "peer/p2pnet/internal/acceptlimit", "peer/p2pnet/internal/secure", "internal/loglimit", "internal/atomicfile"},
		"an adapter knows package transport and its one library, and limits the log that it is given"},
	{"peer/swim", []string{"peer/transport", "internal/loglimit"},
		"an adapter knows package transport and its one library, and limits the log that it is given"},
	{"peer/memnet", []string{"peer/transport"},
		"an adapter knows package transport and its one library"},
	{"peer/description", []string{"peer/transport"},
		"what a run is, in names and values that members sign; who compares them is the arrival's business (docs/design/032)"},
	{"peer/decoded", []string{"internal/filelock"},
		"what is decoded once is bytes; what they are of is their reader's business (docs/design/046)"},
	{"peer/checkpoint", []string{"internal/atomicfile", "internal/filelock", "peer", "peer/description", "peer/optim", "peer/transport", "peer/stats", "tensor"},
		"files of a peer's state know the peer, and no flag of a program"},
	{"peer/bridge", []string{"internal/atomicfile", "internal/ewma", "internal/kernel", "peer", "peer/control", "peer/description", "peer/optim", "peer/transport", "peer/stats", "tensor"},
		"a trainer in another process is served by a peer, whatever makes that peer"},
	{"peer/metrics", []string{"peer/control", "peer/stats"},
		"numbers of a peer are told in a text that needs no library"},
	{"peer/serve", []string{"peer/metrics", "peer/stats", "peer/table"},
		"predictions are answered of any model, and whether it is trained, and by whom, is not their business (docs/design/049)"},
	{"peer/table/read", []string{"peer/decoded", "peer/table"},
		"files become columns; what is made of those is not its business"},
	{"peer/table", nil,
		"columns and stages know a flock by three methods, and no peer"},
	{"peer/table/prepare", []string{"peer/table"},
		"stages are fitted by sums of a flock, and know no peer"},
	{"peer/table/summary", []string{"peer/table"},
		"a description is sums over columns; it needs no stage, no learner and no peer (docs/design/045)"},
	{"peer/learn", []string{"internal/kernel", "peer/table", "peer/table/prepare"},
		"learners know sums and columns, and a task how these are prepared; trees are loops; no peer (docs/design/039)"},
	{"peer/plan", nil,
		"who does what follows from what members say of themselves; how that is told is not its business (docs/design/047)"},
	{"peer/search", nil,
		"which trial goes on follows from what members report of it; what a trial is, and how it is told, is not its business (docs/design/062)"},
	{"peer/stats", []string{"peer/transport"},
		"figures are for whoever reads them"},
	{"internal/counters", []string{"internal/coding", "internal/ewma", "internal/links", "internal/replica", "internal/session", "internal/wire", "peer/transport", "peer/stats"},
		"what is counted follows from what happened, whoever did it"},
	{"internal/flock", []string{"peer/transport"},
		"who is here and how far follows from what members sign"},
	{"internal/presence", []string{"averaging", "internal/admit", "internal/collective", "internal/flock", "peer/transport", "topology"},
		"the place of a peer among the members follows from the membership's records and the flock's accounts of them"},
	{"internal/conversations", []string{"averaging", "internal/coding", "internal/collective", "internal/flock", "internal/framed", "internal/harm", "internal/idle", "internal/links", "internal/mail", "internal/replica", "internal/requests", "internal/presence", "internal/session", "internal/counters", "internal/tasks", "internal/wire", "peer/transport", "topology"},
		"conversations are driven over streams the same way, whatever the machine that wants them; the peer hands over what they tell of it"},
	{"peer", append([]string{"peer/description", "internal/mask", "internal/sums", "internal/sumnet", "internal/conversations", "internal/tasks", "internal/counters", "peer/stats", "internal/orders", "peer/control", "internal/flock", "internal/presence", "peer/transport", "peer/p2pnet", "peer/swim", "internal/admit", "internal/arrival", "internal/stateserver", "internal/pushpull", "internal/framed", "internal/loglimit", "internal/requests"}, below...),
		"the runtime joins everything below with its default adapters, and knows no test network"},
	{"peer/meetings", []string{"peer"},
		"members meet by sums of a flock; what they say there is not its business"},
	{"peer/follow", []string{"peer/meetings"},
		"when to train on follows from what members tell each other; what is trained, and on what, is its caller's (docs/design/063)"},
	{"peer/paramclient", []string{"internal/flock", "internal/framed", "internal/pushpull", "internal/wire", "peer", "peer/transport", "tensor"},
		"values travel over streams that a node lends, whoever computes gradients of them (docs/design/051)"},
	{"peer/rows", []string{"internal/framed", "internal/handout", "internal/idle", "internal/tasks", "internal/wire", "peer", "peer/stats", "peer/transport"},
		"rows travel over streams that a node lends; what they are, and what is learned from them, is not its business (docs/design/044)"},
	{"peer/pipeline", []string{"internal/flock", "internal/framed", "internal/idle", "internal/stages", "internal/tasks", "internal/wire", "peer", "peer/control", "peer/optim", "peer/transport", "quant", "tensor", "tensor/nn"},
		"micro-batches travel over streams that a node lends, and a trainer averages the stage as it does any model (docs/design/058)"},
	{"peer/peertest", append([]string{"peer", "peer/control", "peer/pipeline", "tensor/nn", "peer/transport", "peer/stats", "peer/memnet", "peer/p2pnet", "peer/swim"}, below...),
		"the harness may use all that it puts together"},

	{"examples/...", []string{
		"tensor", "tensor/nn", "quant", "topology", "averaging", "averaging/baseline", "averaging/merge",
		"peer", "peer/bridge", "peer/checkpoint", "peer/control", "peer/decoded", "peer/description", "peer/follow", "peer/learn", "peer/meetings", "peer/metrics", "peer/plan", "peer/table", "peer/table/prepare", "peer/table/read", "peer/table/summary", "peer/transport", "peer/optim", "peer/p2pnet", "peer/pipeline", "peer/rows", "peer/search", "peer/serve", "peer/swim", "peer/memnet", "peer/peertest",
		"peer/stats",
		"examples/...",
	}, "examples show what a user can write, so they import public packages only"},
}

// below are the packages below peer.
var below = []string{
	"internal/kernel", "internal/ops", "internal/coding", "internal/ewma", "internal/wire", "internal/collective", "internal/replica", "internal/session", "internal/trainer", "internal/sim", "internal/links", "internal/harm",
	"tensor", "tensor/nn", "quant", "topology", "averaging", "averaging/baseline", "averaging/merge", "peer/optim",
	"internal/handout", "internal/stages", "internal/until",
}

// keeper is a rule for one outside library: the only rooms that import it.
type keeper struct {
	library string // an import path, and all below it
	rooms   []string
	why     string
}

var keepers = []keeper{
	{"github.com/libp2p", []string{"peer/p2pnet/..."},
		"libp2p stays replaceable behind peer/transport"},
	{"github.com/multiformats", []string{"peer/p2pnet/..."},
		"multiaddrs are libp2p's address form; elsewhere an address is a string"},
	{"github.com/hashicorp/memberlist", []string{"peer/swim"},
		"memberlist stays replaceable behind peer/transport"},
	{"github.com/spf13", []string{"examples/..."}, noTools},
	{"go.yaml.in/yaml", []string{"examples/..."}, noTools},
	{"gopkg.in/yaml.v3", []string{"examples/..."}, noTools},
	{"github.com/apache/arrow-go", []string{"peer/table/read"},
		"a service that learns from tables of its own links no reader of files"},
	{"github.com/klauspost/compress", []string{"peer/table/read"},
		"a service that learns from tables of its own links no reader of files"},
	{"golang.org/x/text", []string{"peer/table/read"},
		"a service that learns from tables of its own links no reader of files"},
	{"github.com/prometheus", []string{"examples/..."}, noTools},
	{"gonum.org/v1/plot", []string{"examples/..."}, noTools},
}

const noTools = "a service that embeds peer asks for no command-line, plotting or metrics library of ours"

// The reasons of the bans below peer.
const (
	noWorld  = "packages below peer reach no socket, file or log: the runtime does, and a simulation has none"
	noClock  = "packages below peer take time as an argument, so that virtual time is as good as real time"
	noChance = "packages below peer take randomness as an argument, so that a seed replays a run"
	noLocks  = "packages below peer are pure and their caller serialises them; only internal/replica has slice locks, internal/links one for a look-up, and tensor, its nn and internal/sim fork and join inside one call"
	noForks  = "packages below peer start nothing: only tensor, its nn and internal/sim fork, and join inside the same call"
)

// sample is the sample program.
const (
	sample   = "gossipnode"
	noSample = "the library knows no sample: say which field or method, and let the sample say which flag"
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
	{"sync", []string{"internal/replica", "internal/links", "tensor", "tensor/nn", "internal/sim"}, noLocks},
}

// forkers may use go statements and channels, within one call.
var forkers = []string{"tensor", "tensor/nn", "internal/sim"}

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

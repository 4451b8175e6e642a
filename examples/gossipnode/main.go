// Gossipnode trains a model on pictures together with other processes like it,
// with no server: it is the sample program of the library and a small tool in
// its own right.
//
//	gossipnode local                             four peers on this machine
//	gossipnode run                               one peer
//	gossipnode run --join HOST:PORT              another one, anywhere
//	gossipnode keygen --out node.key             an identity that lasts
//	gossipnode data fetch cifar10                pictures to learn from
//	gossipnode doctor --join HOST:PORT           what would keep this peer from joining
//	gossipnode topology --peers 64               who would talk to whom
//	gossipnode inspect DIR                       what a checkpoint holds
//	gossipnode export DIR --out FILE             the model in it, for other programs
//	gossipnode simulate, gossipnode compare      many peers and rivals in virtual time
//
// A newcomer begins with docs/GUIDE.md, an operator with docs/OPERATING.md.
//
// Every flag can also be a key of a YAML file given with --config, or an
// environment variable such as GOSSIPNODE_BATCH; a flag comes before the
// environment, and that before the file. Logs and progress go to standard error.
// With --json the last line of standard output is one JSON object. The exit code
// is 0 when the work is done, 1 when it failed, 2 when the command line is wrong,
// 3 when the work is done but not the final merge that was asked for.
//
// Limits: the models of package nets and the data of package dataset. A service that
// trains its own model embeds package peer instead; examples/embed shows how
// little that takes.
//
// To read the program, begin with run.go (a command), train.go (one peer from
// its data to its result) and flock.go (how local watches several of them). What
// stands by itself is in folders: cli (what every command stands on), checkpoint (with
// the commands inspect and export), the commands bench, fetch (which is data fetch) and
// overlay (topology), and metrics and dashboard on top of web, which show a peer to those
// who watch.
package main

import (
	"os"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

func main() {
	os.Exit(execute(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

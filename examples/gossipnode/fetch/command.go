package fetch

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Command makes the command that downloads public data sets.
func Command(std cli.Streams) *cobra.Command { return newCommand(std, publicSets()) }

// newCommand makes that command for the given data sets.
func newCommand(std cli.Streams, sets []publicSet) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Get public data sets",
		Long: `Data gets the public data sets that run and local train on. Glyphs, the default,
needs none of it.`,
		Example: `  gossipnode data fetch mnist
  gossipnode local --dataset mnist --data data/mnist`,
		Args: cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newFetch(std, sets))
	return cmd
}

// newFetch makes the command that downloads.
func newFetch(std cli.Streams, sets []publicSet) *cobra.Command {
	var (
		dir, from string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Download a public data set, verified",
		Long: `Fetch downloads the original files of ` + cli.List(namesOf(sets)) + ` over
HTTPS and checks their SHA-256 before they get their names. A file whose connection
fails is fetched again; those that are there already are not.

The pictures belong to their makers: see the page of the data set for its licence.`,
		Example: `  gossipnode data fetch mnist
  gossipnode data fetch cifar10 --data DIR --json
  gossipnode data fetch cifar10 --from https://mirror.example/cifar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			set, err := setNamed(sets, args)
			if err != nil {
				return err
			}
			if dir == "" {
				dir = filepath.Join("data", set.name)
			}
			if from != "" {
				if set.bases, err = mirror(from); err != nil {
					return sources.Usage(err)
				}
			}
			return runFetch(set, dir, asJSON, std)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "data", "", "folder to put the files into (default: data/NAME)")
	flags.StringVar(&from, "from", "", "URL of a folder that has the same files, in place of the public one")
	flags.BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	cli.TakeFile(flags)
	return cmd
}

func namesOf(sets []publicSet) []string {
	var names []string
	for _, set := range sets {
		names = append(names, set.name)
	}
	return names
}

// setNamed returns the data set of the arguments.
func setNamed(sets []publicSet, args []string) (publicSet, error) {
	if len(args) != 1 {
		return publicSet{}, cli.Usagef("fetch wants the name of one data set: %s", cli.List(namesOf(sets)))
	}
	if i := slices.Index(namesOf(sets), args[0]); i >= 0 {
		return sets[i], nil
	}
	return publicSet{}, cli.Usagef("no data set %q to fetch: want %s", args[0], cli.List(namesOf(sets)))
}

// mirror is the address of --from. It needs no TLS, since the files are verified.
func mirror(from string) ([]string, error) {
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, cli.Faultf("from", "%q: want the URL of a folder, as in https://mirror.example/mnist", from)
	}
	return []string{strings.TrimSuffix(from, "/") + "/"}, nil
}

// fetchResult is the output of fetch --json.
type fetchResult struct {
	Dataset string `json:"dataset"`
	Data    string `json:"data"`
	// Files are the verified files.
	Files []publicFile `json:"files"`
	// Received is the number of bytes that came over the network.
	Received int64   `json:"bytes_received"`
	Seconds  float64 `json:"seconds"`
}

func runFetch(set publicSet, dir string, asJSON bool, std cli.Streams) error {
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	started := time.Now()
	f := newFetcher(dir, func(line string) { fmt.Fprintln(std.Err, line) })
	defer f.client.CloseIdleConnections()
	received, err := f.fetch(ctx, set)
	if err != nil {
		return err
	}
	return cli.Print(fetchResult{
		Dataset: set.name, Data: dir, Files: set.result(),
		Received: received, Seconds: time.Since(started).Seconds(),
	}, asJSON, std)
}

// String describes the result.
func (r fetchResult) String() string {
	text := fmt.Sprintf("%s is in %s, verified: %s, %s fetched.\n", r.Dataset, r.Data, cli.Plural(uint64(len(r.Files)), "file"), cli.Size(uint64(r.Received)))
	return text + fmt.Sprintf("Train on it with: gossipnode local --dataset %s --data %s\n", r.Dataset, r.Data)
}

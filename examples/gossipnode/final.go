package main

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/tensor"
)

// finalSettings say what model a peer ends with.
type finalSettings struct {
	Final        string
	FinalWeights string
	FinalWait    time.Duration
}

const (
	finalFlag        = "final"
	finalWeightsFlag = "final-weights"
	finalWaitFlag    = "final-wait"

	finalLocal = "local"
	finalMerge = "merge"
	// finalUnmerged is not asked for: it is what a merge comes to that fails.
	finalUnmerged = "unmerged"

	weightsEqual   = "equal"
	weightsSamples = "samples"

	defaultFinalWait = 10 * time.Second
	// finalWaits is how many times as long as it waits for others a peer takes to
	// merge, at most: for those who come late, and for attempts that a death breaks off.
	finalWaits = 4
)

func (s *finalSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Final, finalFlag, finalLocal, "model that a peer ends with: local (its own, which is near the others'), or merge (the mean of all, with the same bytes for everybody: worth its time where labels are skewed or exchanges rare; not the default, since each then waits for the slowest). The same for all peers; for adpsgd")
	flags.StringVar(&s.FinalWeights, finalWeightsFlag, weightsEqual, "what a peer's model counts in the merge: equal, or samples (as many as it has training pictures)")
	flags.DurationVar(&s.FinalWait, finalWaitFlag, defaultFinalWait, "how long the merge waits for a peer that is silent, and for one transfer; after four times that a peer keeps its own model")
}

// finalFaults are what is wrong with them.
func (s settings) finalFaults() []error {
	faults := []error{
		cli.OneOf(finalFlag, s.Final, []string{finalLocal, finalMerge}),
		cli.OneOf(finalWeightsFlag, s.FinalWeights, []string{weightsEqual, weightsSamples}),
	}
	if s.FinalWait <= 0 {
		faults = append(faults, cli.Faultf(finalWaitFlag, "%s: want a positive time", s.FinalWait))
	}
	if s.Final == finalMerge && s.Strategy != strategyADPSGD {
		faults = append(faults, cli.Faultf(finalFlag, "%s is for %s: with --strategy %s leave it out", finalMerge, strategyADPSGD, s.Strategy))
	}
	if s.Final != finalMerge && s.FinalWait != defaultFinalWait {
		faults = append(faults, cli.Faultf(finalWaitFlag, "needs --%s %s", finalFlag, finalMerge))
	}
	if s.Final != finalMerge && s.FinalWeights == weightsSamples {
		faults = append(faults, cli.Faultf(finalWeightsFlag, "needs --%s %s", finalFlag, finalMerge))
	}
	return present(faults)
}

// algorithm is the machine of this peer, with the merge at its end if there is to be one;
// nil is the one that a peer has by itself.
func (t *training) algorithm() func(averaging.Config) (averaging.Machine, error) {
	if t.Final != finalMerge {
		return t.machine(t.Batch)
	}
	weight := 0.0
	if t.FinalWeights == weightsSamples {
		weight = float64(min(max(t.data.Len(), 1), baseline.MaxModelWeight))
	}
	return func(c averaging.Config) (averaging.Machine, error) {
		inner, err := averaging.NewADPSGD(c)
		if err != nil {
			return nil, err
		}
		return baseline.NewMerge(baseline.Config{Self: c.Self, Deadline: t.FinalWait, Weight: weight}, inner)
	}
}

// grace is how long a peer stays once the run is over for it; 0 is the default of package
// peer.
func (s finalSettings) grace() time.Duration {
	if s.Final != finalMerge {
		return 0
	}
	return finalWaits * s.FinalWait
}

// modelHash names a model: the first digits of SHA-256 of its values.
func modelHash(values tensor.Vector) string {
	const (
		digits = 16
		piece  = 1 << 14
	)
	hash := sha256.New()
	scratch := make([]byte, 0, piece*tensor.ValueSize)
	for part := range slices.Chunk(values, piece) {
		scratch = tensor.AppendBytes(scratch[:0], part)
		hash.Write(scratch) // fails never
	}
	return hex.EncodeToString(hash.Sum(nil))[:digits]
}

// finalResult is what model a peer has ended with, or several have.
type finalResult struct {
	// Final is merge after a merge (in local, of all peers that finished), local if there
	// was to be none, and unmerged if it has not come about.
	Final string `json:"final,omitempty"`
	// ModelHash is the first 16 digits of SHA-256 of the final parameters as float32,
	// little-endian; of local it is there if all are the same.
	ModelHash string `json:"model_hash,omitempty"`
	// Hashes are those of the peers that finished, in their order; for local only.
	Hashes []string `json:"hashes,omitempty"`
}

// final is what this peer has ended with.
func (t *training) final(merged bool) finalResult {
	r := finalResult{Final: finalLocal, ModelHash: modelHash(t.params.Vector())}
	switch {
	case merged:
		r.Final = finalMerge
	case t.Final == finalMerge:
		r.Final = finalUnmerged
	}
	return r
}

// finalOf puts together what peers have ended with.
func finalOf(shares []share) finalResult {
	first := shares[0].Result
	all := finalResult{Final: first.Final, ModelHash: first.ModelHash}
	for _, s := range shares {
		all.Hashes = append(all.Hashes, s.Result.ModelHash)
		if s.Result.Final != all.Final {
			all.Final = finalUnmerged
		}
		if s.Result.ModelHash != all.ModelHash {
			all.ModelHash = ""
		}
	}
	return all
}

// exitUnmerged is the exit code of unmergedError.
const exitUnmerged = 3

// unmergedError: the work is done, and the one model that was asked for is not there. To
// start again would not bring it back: the others have gone.
type unmergedError struct{}

func (unmergedError) Error() string {
	return "the work is done, but not all have ended with one merged model, as the result says"
}

// ExitWith is the exit code.
func (unmergedError) ExitWith() int { return exitUnmerged }

// unmerged is an unmergedError if a merge was asked for and has not come about, or if those of
// several peers differ.
func (r finalResult) unmerged() error {
	if r.Final == finalUnmerged || r.Final == finalMerge && r.ModelHash == "" {
		return unmergedError{}
	}
	return nil
}

// summary tells it in words.
func (r finalResult) summary() string {
	switch several := len(r.Hashes) > 0; {
	case r.Final == finalMerge && r.ModelHash != "":
		return "Final model, merged: " + r.ModelHash + ".\n"
	case r.Final == finalMerge: // some could not reach each other
		return "The final merges differ: " + strings.Join(r.Hashes, ", ") + ".\n"
	case r.Final == finalUnmerged && several:
		return "The final merge has not come about at all peers: " + strings.Join(r.Hashes, ", ") + ".\n"
	case r.Final == finalUnmerged:
		return "The final merge has not come about. The peer's own model: " + r.ModelHash + ".\n"
	case r.ModelHash != "":
		return "Final model: " + r.ModelHash + ".\n"
	}
	return ""
}

package result

import (
	"crypto/sha256"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

// FinalResult describes the final model of one peer, or those of several.
type FinalResult struct {
	// Final is merge after a merge (in local, of all peers that finished), local if no merge
	// was asked for, and unmerged if the merge failed.
	Final string `json:"final,omitempty"`
	// ModelHash is the first 16 hexadecimal digits of SHA-256 of the final parameters that peers
	// share, as float32, little-endian. In local it is empty unless it is the same for all peers.
	ModelHash string `json:"model_hash,omitempty"`
	// Hashes are the hashes of the peers that finished, in the order of the peers; in local only.
	Hashes []string `json:"hashes,omitempty"`
}

// ExitUnmerged is the exit code of unmergedError.
const ExitUnmerged = 3

// unmergedError: the work is done, but the merge that was asked for has failed. To start
// the peer again does not help: the others have gone.
type unmergedError struct{}

func (unmergedError) Error() string {
	return "the work is done, but not all have ended with one merged model, as the result says"
}

// ExitWith is the exit code.
func (unmergedError) ExitWith() int { return ExitUnmerged }

// Unmerged returns an unmergedError if a merge was asked for and has failed, or if several peers
// have ended with different models.
func (r FinalResult) Unmerged() error {
	if r.Final == settings.FinalUnmerged || r.Final == settings.FinalMerge && r.ModelHash == "" {
		return unmergedError{}
	}
	return nil
}

// Summary describes the final model in words.
func (r FinalResult) Summary() string {
	switch several := len(r.Hashes) > 0; {
	case r.Final == settings.FinalMerge && r.ModelHash != "":
		return "Final model, merged: " + r.ModelHash + ".\n"
	case r.Final == settings.FinalMerge: // some peers could not reach each other
		return "The final merges differ: " + strings.Join(r.Hashes, ", ") + ".\n"
	case r.Final == settings.FinalUnmerged && several:
		return "The final merge has not come about at all peers: " + strings.Join(r.Hashes, ", ") + ".\n"
	case r.Final == settings.FinalUnmerged:
		return "The final merge has not come about. The peer's own model: " + r.ModelHash + ".\n"
	case r.ModelHash != "":
		return "Final model: " + r.ModelHash + ".\n"
	}
	return ""
}

// Hash is the first 16 hexadecimal digits of SHA-256 of a model's shared values. Values that are local
// to each peer, such as the statistics of a batch normalization, are left out. So models with equal
// shared values have the same hash.
func Hash(p *tensor.Params) (name string) {
	const digits = 16
	of := sha256.New()
	for _, r := range p.Layout().Ranges() {
		if r.Sharing != tensor.Local {
			name = checkpoint.Digest(of, p.Vector()[r.Offset:r.Offset+r.Len])[:digits]
		}
	}
	return name
}

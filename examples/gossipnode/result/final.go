package result

import (
	"crypto/sha256"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

// FinalResult is what model a peer has ended with, or several have.
type FinalResult struct {
	// Final is merge after a merge (in local, of all peers that finished), local if there
	// was to be none, and unmerged if it has not come about.
	Final string `json:"final,omitempty"`
	// ModelHash is the first 16 digits of SHA-256 of the final parameters that peers share, as
	// float32, little-endian; of local it is there if all are the same.
	ModelHash string `json:"model_hash,omitempty"`
	// Hashes are those of the peers that finished, in their order; for local only.
	Hashes []string `json:"hashes,omitempty"`
}

// ExitUnmerged is the exit code of unmergedError.
const ExitUnmerged = 3

// unmergedError: the work is done, and the one model that was asked for is not there. To
// start again would not bring it back: the others have gone.
type unmergedError struct{}

func (unmergedError) Error() string {
	return "the work is done, but not all have ended with one merged model, as the result says"
}

// ExitWith is the exit code.
func (unmergedError) ExitWith() int { return ExitUnmerged }

// Unmerged is an unmergedError if a merge was asked for and has not come about, or if those of
// several peers differ.
func (r FinalResult) Unmerged() error {
	if r.Final == settings.FinalUnmerged || r.Final == settings.FinalMerge && r.ModelHash == "" {
		return unmergedError{}
	}
	return nil
}

// Summary tells it in words.
func (r FinalResult) Summary() string {
	switch several := len(r.Hashes) > 0; {
	case r.Final == settings.FinalMerge && r.ModelHash != "":
		return "Final model, merged: " + r.ModelHash + ".\n"
	case r.Final == settings.FinalMerge: // some could not reach each other
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

// Hash names a model: the first digits of SHA-256 of its values. What is local to each peer, such as
// the statistics of a batch normalization, has no part in it: models that are one in all that is
// shared have one name.
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

package run

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
)

// printCodecs prints the policy with its defaults written out, so that it can
// be read with --policy again, and as comments what it comes to for the model.
func printCodecs(s settings.Settings, out io.Writer) (err error) {
	s.Checkpoint, s.Init = "", "" // values do not matter
	work, err := workload.Prepare(s, make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Batches.Close()) }()
	policy, err := work.Codecs(s)
	if err != nil {
		return err
	}
	text, err := settings.PrintPolicy(policy.Effective())
	if err != nil {
		return err
	}
	for _, layer := range policy.Explain(work.Params.Layout()) {
		text += "# " + layer + "\n"
	}
	if _, err = io.Copy(out, strings.NewReader(text)); err != nil {
		return fmt.Errorf("printing the codec policy: %w", err)
	}
	return nil
}

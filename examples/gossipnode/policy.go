package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/quant"
)

// The flags that say how models are coded.
const (
	policyFlag       = "policy"
	codecFlag        = "codec"
	quantizedFlag    = "quantized"
	printPolicyFlag  = "print-policy"
	defaultQuantized = "100"
)

// settlePolicy lets --policy hide what --codec and --quantized say in places that
// count less, and the other way round.
func (s *trainSettings) settlePolicy(sources cli.Origins) {
	by := sources.Source(policyFlag)
	if max(sources.Source(codecFlag), sources.Source(quantizedFlag)) > by {
		s.Policy, sources[policyFlag] = "", cli.Origin{}
		return
	}
	if sources.Source(codecFlag) < by {
		s.Codec, sources[codecFlag] = quant.DefaultName, cli.Origin{}
	}
	if sources.Source(quantizedFlag) < by {
		s.Quantized, sources[quantizedFlag] = defaultQuantized, cli.Origin{}
	}
}

// policy is what --policy, or --codec and --quantized, ask for.
func (s trainSettings) policy() (quant.Policy, error) {
	if s.Policy == "" {
		return quant.Policy{Codec: s.Codec, Quantized: s.Quantized}, nil
	}
	if s.Codec != quant.DefaultName || s.Quantized != defaultQuantized {
		return quant.Policy{}, errors.New("--policy says how models are coded, and so do --codec and --quantized: give the one or the others")
	}
	return readPolicy(s.Policy)
}

// codecName is what results call the way in which models are coded.
func (s trainSettings) codecName() string {
	policy, err := s.policy()
	if err != nil {
		return s.Codec // validate has seen to it
	}
	return policy.Effective().Codec
}

// codecs is the policy for this workload's model; what it asks of ranges that the
// model does not have is a fault of usage.
func (s settings) codecs(work *workload) (quant.Policy, error) {
	policy, err := s.policy()
	if err == nil {
		err = policy.Validate(work.params.Layout())
	}
	if err != nil {
		return policy, cli.Usage(err)
	}
	return policy, nil
}

// printEffectivePolicy prints the policy with its defaults written out, so that it can
// be read with --policy again, and as comments what it comes to for the model.
func (s settings) printEffectivePolicy(out io.Writer) (err error) {
	s.Checkpoint, s.Init = "", "" // values do not matter
	work, err := s.prepare(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.batches.Close()) }()
	policy, err := s.codecs(work)
	if err != nil {
		return err
	}
	text, err := printPolicy(policy.Effective())
	if err != nil {
		return err
	}
	for _, layer := range policy.Explain(quant.JointLayers(work.params.Layout())) {
		text += "# " + layer + "\n"
	}
	if _, err = io.Copy(out, strings.NewReader(text)); err != nil {
		return fmt.Errorf("printing the codec policy: %w", err)
	}
	return nil
}

// tellPolicy logs how the joint layers of the model are coded.
func (t *training) tellPolicy() {
	t.log.Info("how exchanges are coded", zap.Strings("joint_layers", t.policy.Explain(quant.JointLayers(t.params.Layout()))))
}

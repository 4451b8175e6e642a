package settings

import (
	"cmp"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/follow"
	"github.com/seed-97356399/murmuration/quant"
)

// The flags that choose the codecs of models.
const (
	policyFlag       = "policy"
	codecFlag        = "codec"
	quantizedFlag    = "quantized"
	defaultQuantized = "100"
	// codecNames is quant.Names and quant.Auto in short.
	codecNames = "raw, bf16, fp16, int8, latticeA+B with A of 8, 6, 5, 4 and B of 8, 4, 3, 1, or auto"
)

// codecSettings choose the codecs of models.
type codecSettings struct {
	Codec     string
	Quantized string
	Policy    string
}

func (s *codecSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Codec, codecFlag, quant.DefaultName, codecNames+" (by each link)")
	flags.StringVar(&s.Quantized, quantizedFlag, defaultQuantized, "`percent` of what is exchanged that may take fewer than 16 bits a value, if the codec does; or over the run, as in 0@0,100@0.3")
	flags.StringVar(&s.Policy, policyFlag, "", "YAML `file` that says how each joint layer of the model is coded, instead of --codec and --quantized; with --follow: cost-aware (default) or best-effort")
}

// settlePolicy resets --codec and --quantized to their defaults if --policy comes from a source of
// higher rank, and drops --policy if one of the two does.
func (s *codecSettings) settlePolicy(sources cli.Origins) {
	if s.follows() {
		return
	}
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

// CodecPolicy is the policy of the file --policy, or the one that --codec and --quantized make.
func (s codecSettings) CodecPolicy() (quant.Policy, error) {
	if s.Policy == "" || s.follows() {
		return quant.Policy{Codec: s.Codec, Quantized: s.Quantized}, nil
	}
	if s.Codec != quant.DefaultName || s.Quantized != defaultQuantized {
		return quant.Policy{}, errors.New("--policy says how models are coded, and so do --codec and --quantized: give the one or the others")
	}
	return readPolicy(s.Policy)
}

// CodecName is the name of the codec in results.
func (s codecSettings) CodecName() string {
	policy, err := s.CodecPolicy()
	if err != nil {
		return s.Codec // not reached: Validate has checked the policy
	}
	return policy.Effective().Codec
}

// FollowPolicy is what --policy says of the data that arrive.
func (s codecSettings) FollowPolicy() follow.Policy {
	policy, _ := follow.ParsePolicy(cmp.Or(s.Policy, follow.CostAware.String())) // faults has checked it
	return policy
}

// follows tells whether --policy is of the data that arrive, and no file.
func (s codecSettings) follows() bool { return slices.Contains(follow.Policies(), s.Policy) }

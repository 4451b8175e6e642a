package bench

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	defaultMatmulRounds = 15
	minMatmulRounds     = 3
	maxMatmulShapes     = 32
	maxMatmulSide       = 4096
)

// matmulSettings are the flags of bench matmul.
type matmulSettings struct {
	shapes []string
	rounds int
	seed   uint64
	json   bool
}

// matmulShapes are measured unless others are asked for: a large square, the layer
// of a perceptron with a large batch, and the three products that training takes of
// that layer with a batch of 64.
func matmulShapes() []string {
	return []string{"1024x1024x1024", "512x256x784", "64x256x784", "784x256x64/tn", "64x784x256/nt"}
}

// newMatmul makes the command that measures products of matrices.
func newMatmul(std cli.Streams) *cobra.Command {
	var s matmulSettings
	cmd := &cobra.Command{
		Use:   "matmul",
		Short: "Measure products of matrices beside the core's peak and gonum",
		Long: `Matmul measures products of matrices on one core. Each is timed in turn with a loop
of multiply-adds in registers alone, the core's own peak, and with gonum's blas32.Gemm,
held to the same core by GOMAXPROCS=1. A ratio is the median of those of the rounds.

A shape MxNxK is M rows by N columns over an inner dimension of K; /tn says that the
first factor lies transposed in memory (the gradient of weights), /nt that the second
does (the gradient of inputs). The error is the largest difference from float64,
relative to the sum of the magnitudes that the element is made of.`,
		Example: `  gossipnode bench matmul
  gossipnode bench matmul --shape 64x10x256,256x10x64/tn --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := cli.Resolve(cmd)
			if err != nil {
				return err
			}
			shapes, err := s.validate(sources)
			if err != nil {
				return err
			}
			return cli.Print(s.measure(shapes), s.json, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&s.shapes, "shape", matmulShapes(), "shapes, each MxNxK, MxNxK/tn or MxNxK/nt")
	flags.IntVar(&s.rounds, "rounds", defaultMatmulRounds, "samples of each product, of the peak and of gonum's")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the values")
	flags.BoolVar(&s.json, "json", false, "print the figures as one JSON object, the last line of standard output")
	flags.String(cli.ConfigFlag, "", "YAML file with the same keys as the flags")
	return cmd
}

func (s matmulSettings) validate(sources cli.Origins) ([]matmulShape, error) {
	faults := []error{cli.Within("rounds", s.rounds, minMatmulRounds, maxRounds)}
	if len(s.shapes) == 0 || len(s.shapes) > maxMatmulShapes {
		faults = append(faults, cli.Faultf("shape", "has %d shapes: want 1 to %d", len(s.shapes), maxMatmulShapes))
	}
	var shapes []matmulShape
	for _, text := range s.shapes {
		shape, err := parseMatmulShape(text)
		shapes, faults = append(shapes, shape), append(faults, err)
	}
	return shapes, sources.Usage(faults...)
}

// matmulShape is m by n over k.
type matmulShape struct {
	m, n, k        int
	transA, transB bool // whether a or b lies transposed
}

// parseMatmulShape reads MxNxK with /tn, /nt or neither.
func parseMatmulShape(text string) (matmulShape, error) {
	var s matmulShape
	sizes, form, _ := strings.Cut(text, "/")
	sides := strings.Split(sizes, "x")
	wrong := cli.Faultf("shape", "%q: want MxNxK, MxNxK/tn or MxNxK/nt with sides from 1 to %d", text, maxMatmulSide)
	if len(sides) != 3 {
		return s, wrong
	}
	for i, side := range []*int{&s.m, &s.n, &s.k} {
		n, err := strconv.Atoi(sides[i])
		if err != nil || n < 1 || n > maxMatmulSide {
			return s, wrong
		}
		*side = n
	}
	switch form {
	case "", "nn":
	case "tn":
		s.transA = true
	case "nt":
		s.transB = true
	default:
		return s, wrong
	}
	return s, nil
}

func (s matmulShape) form() string {
	switch {
	case s.transA:
		return "tn"
	case s.transB:
		return "nt"
	default:
		return "nn"
	}
}

func (s matmulShape) operations() float64 { return 2 * float64(s.m) * float64(s.n) * float64(s.k) }

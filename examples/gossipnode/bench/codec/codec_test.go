package codec

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/quant"
)

// TestCodec shows that every step of every codec is measured at every size, that
// none allocates, and that sizes and errors are the ones that the formats have.
func TestCodec(t *testing.T) {
	code, out, logged := program.Try("codec", "--bytes", "65536,300000", "--rounds", "9", "--json", "--codecs", strings.Join(quant.Names(), ","))
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	var r codecResult
	fields := clitest.OneLine(t, []byte(out), &r)
	if _, ok := fields["speeds"]; !ok || r.CPU == "" || r.Instructions == "" || r.GOMAXPROCS < 1 || r.Rounds != 9 || r.Apart != 0.01 {
		t.Errorf("%+v", r)
	}
	if len(r.Codecs) != len(quant.Names()) || len(r.Speeds) != 2*3*len(r.Codecs) {
		t.Fatalf("%d codecs, %d speeds", len(r.Codecs), len(r.Speeds))
	}
	for _, s := range r.Speeds {
		if !(s.GBPerSecond > 0 && s.CopyGB > 0 && s.Ratio > 0) || s.AllocsPerSlice != 0 || !strings.Contains(logged, "\n"+s.Codec+" "+s.Step+" ") {
			t.Errorf("%+v", s)
		}
	}
	want := map[string][2]float64{
		"raw": {32, 32}, "bf16": {16, 16}, "fp16": {16, 16}, "int8": {8.03125, 8.03125},
		"lattice8+4": {8.0625, 4.03125}, "lattice6+4": {6.0625, 4.03125}, "lattice4+1": {4.0625, 1.03125},
	}
	errors := make(map[string]float64)
	for _, c := range r.Codecs {
		if bits, ok := want[c.Name]; ok && (c.BitsThere != bits[0] || c.BitsBack != bits[1]) {
			t.Errorf("%+v, want %v bits", c, bits)
		}
		errors[c.Name] = c.RelativeError
	}
	// Of models that are a hundredth apart, coarse codes leave little, lattices a share.
	for name, most := range map[string]float64{"raw": 1e-4, "fp16": 0.05, "int8": 1, "lattice8+8": 0.05, "lattice6+4": 0.2, "lattice4+1": 0.8} {
		if e := errors[name]; !(e > 0 && e < most) || math.IsNaN(e) {
			t.Errorf("%s: error %v, want at most %v", name, e, most)
		}
	}
}

func TestCodecWrongUse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"codec --codecs zip", `--codecs "zip": want raw`},
		{"codec --apart 0", "--apart 0: want more than 0"},
		{"codec --apart 11 --rounds 8", "--rounds 8: want 9 to "},
		{"codec --bytes 100", "--bytes 100: want 4096 to "},
	} {
		code, out, err := program.Try(strings.Fields(c.line)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", c.line, code, out, err, cli.ExitUsage, c.want)
		}
	}
}

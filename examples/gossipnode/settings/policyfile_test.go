package settings

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/quant"
)

// drawPolicy draws a policy that makes sense for some model.
func drawPolicy(t *rapid.T) quant.Policy {
	codec := rapid.SampledFrom(append(quant.Names(), quant.Auto, ""))
	share := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "%d", "%d%%", " %d %% "}).Draw(t, "form")
	})
	percent := func(name string) string {
		form := share.Draw(t, name)
		if form == "" {
			return ""
		}
		return strings.ReplaceAll(fmt.Sprintf(form, rapid.IntRange(0, 100).Draw(t, "percent")), " %", "%")
	}
	p := quant.Policy{
		Codec: codec.Draw(t, "codec"), Exact: rapid.SampledFrom([]string{"", "raw", "bf16", "fp16"}).Draw(t, "exact"), Quantized: percent("quantized"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "rules") {
		p.Rules = append(p.Rules, quant.Rule{
			Class: rapid.SampledFrom([]string{"", "dense", "conv", "embedding", "norm+bias"}).Draw(t, "class"),
			Range: rapid.String().Draw(t, "range"), Codec: codec.Draw(t, "its codec"), Quantized: percent("its share"),
			Priority: rapid.IntRange(-quant.MaxPriority, quant.MaxPriority).Draw(t, "priority"),
		})
	}
	return p
}

// TestPoliciesReadAsPrinted shows that a policy that was printed reads as it was.
func TestPoliciesReadAsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPolicy(t)
		if err := want.Validate(nil); err != nil {
			t.Fatalf("the test draws what makes no sense: %v", err)
		}
		text, err := PrintPolicy(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsePolicy([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v: want %+v, printed as\n%s", got, err, want, text)
		}
	})
}

// TestPolicyAndCodec shows that of --policy and --codec or --quantized, which exclude
// each other, those count that count more, and that both from one source are refused.
func TestPolicyAndCodec(t *testing.T) {
	path := clitest.WriteFile(t, "policy.yaml", "codec: int8\n")
	for _, c := range []struct {
		name, file  string
		environment map[string]string
		args        []string
		want        string // codec and share, or a part of the fault
	}{
		{"a flag over the file", "codec: bf16\nquantized: 5\n", nil, []string{"--policy", path}, "int8 "},
		{"the other way round", "policy: " + path + "\n", nil, []string{"--codec", "bf16"}, "bf16 100"},
		{"a share over the file", "policy: " + path + "\n", map[string]string{"GOSSIPNODE_QUANTIZED": "5"}, nil, "raw 5"},
		{"both at once", "", nil, []string{"--policy", path, "--codec", "bf16"}, "--policy says"},
		{"both in the file", "policy: " + path + "\nquantized: 7\n", nil, nil, "--policy says"},
	} {
		s, err := parse(t, c.file, c.environment, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		policy, err := s.CodecPolicy()
		got := policy.Codec + " " + policy.Quantized
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzParsePolicy shows that no text makes the parser panic, and that what it lets
// through prints as what reads the same.
func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("codec: auto\nrules: [{class: conv, codec: bf16, priority: -3}]\n"))
	f.Add([]byte("quantized: 50%\nexact: raw\n"))
	f.Add([]byte("rules: &r [{class: *r}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		policy, err := parsePolicy(text)
		if err != nil {
			return
		}
		printed, err := PrintPolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parsePolicy([]byte(printed))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(policy) {
			t.Fatalf("%+v reads as %+v, %v; printed as\n%s", policy, again, err, printed)
		}
	})
}

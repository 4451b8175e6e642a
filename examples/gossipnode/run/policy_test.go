package run

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/quant"
)

// TestBadPolicies shows that every fault of a policy is named, with its line.
func TestBadPolicies(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
	}{
		{"codek: raw\n", []string{"policy.yaml: yaml: ", "line 1: field codek not found"}},
		{"codec: raw\ncodec: bf16\nquantised: 5\n", []string{`line 2: mapping key "codec" already defined at line 1`}},
		{"rules:\n- {class: conv, codex: raw}\n- {claas: conv}\n", []string{"line 2: field codex not found", "line 3: field claas not found"}},
		{"colour: red\n", []string{"line 1: field colour not found"}},
		{"codec: zip\nexact: int8\nquantized: 101\n", []string{`codec: "zip" is no codec: want auto or raw`, `exact: "int8": want raw, bf16 or fp16`, `quantized: "101": want 0 to 100 percent`}},
		{"rules:\n- {class: bias}\n- {priority: 5000}\n", []string{`rule 1, class: "bias": want dense, conv, embedding or norm+bias`, `rule 2, priority: 5000`}},
		{"rules: conv\n", []string{"line 1: cannot unmarshal !!str `conv` into []quant.Rule"}},
		{"rules: [conv]\n", []string{"line 1: cannot unmarshal !!str `conv` into quant.Rule"}},
		{"rules:\n- {priority: high}\n", []string{"line 2: cannot unmarshal !!str `high` into int"}},
		{"codec: [raw]\n", []string{"line 1: cannot unmarshal !!seq into string"}},
		{"codec:\n", []string{`line 1: want a plain value`}},
		{"- codec\n", []string{"want a mapping"}},
		{"a: &x [*x]\n", []string{"policy.yaml: "}},
		{"rules: [" + strings.Repeat("{},", quant.MaxRules+1) + "]\n", []string{"rules: 65, at most 64"}},
	} {
		code, out, text := try("run", "--policy", clitest.WriteFile(t, "policy.yaml", c.file))
		for _, want := range c.want {
			if code != cli.ExitUsage || out != "" || !strings.Contains(text, want) {
				t.Errorf("%q: exit code %d, no %q in\n%s", c.file, code, want, text)
			}
		}
	}
	if code, _, text := try("run", "--policy", os.DevNull); code != cli.ExitUsage || !strings.Contains(text, "no regular file") {
		t.Errorf("a policy that can be read only once: exit code %d\n%s", code, text)
	}
	nowhere := clitest.WriteFile(t, "policy.yaml", "rules: [{range: nowhere, codec: raw}]\n")
	code, _, text := try("run", "--policy", nowhere, "--dataset", "mnist", "--data", clitest.Pictures(t, 40, 20), "--batch", "10")
	if code != cli.ExitUsage || !strings.Contains(text, `rule 1, range: the model has no range "nowhere"`) {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestExamplePolicy shows that the file beside this one is what it says.
func TestExamplePolicy(t *testing.T) {
	got, err := policyOf("../policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := quant.Policy{Codec: quant.Auto, Exact: "fp16", Quantized: "100", Rules: []quant.Rule{
		{Class: "norm+bias", Codec: "raw", Priority: 10}, {Class: "conv", Codec: "lattice8+4", Quantized: "50", Priority: 5},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	code, out, logged := try("run", "--policy", "../policy.yaml", "--print-policy", "--dataset", "mnist", "--data", clitest.Pictures(t, 40, 20), "--batch", "10", "--model", "cnn")
	for _, line := range []string{
		"codec: auto\n", "# conv: 0.weight, 144 values: lattice8+4 for 50 % of the slices, fp16 for the others, priority 5\n",
		"# norm+bias: 0.bias to 7.bias, 58 values: raw, priority 10\n", "# dense: 7.weight, 15680 values: auto\n",
	} {
		if code != cli.ExitDone || !strings.Contains(out, line) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, line, out, logged)
		}
	}
	if again, err := policyOf(clitest.WriteFile(t, "again.yaml", out)); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("what is printed reads as %+v, %v", again, err)
	}
}

// policyOf reads a policy as run does.
func policyOf(path string) (quant.Policy, error) {
	var s settings.Settings
	s.Codec, s.Quantized, s.Policy = quant.DefaultName, "100", path
	return s.CodecPolicy()
}

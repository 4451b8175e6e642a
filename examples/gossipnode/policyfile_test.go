package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/quant"
)

// TestExamplePolicy shows that the file beside this one is what it says.
func TestExamplePolicy(t *testing.T) {
	got, err := readPolicy("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := quant.Policy{Codec: quant.Auto, Exact: "fp16", Quantized: "100", Rules: []quant.Rule{
		{Class: "norm+bias", Codec: "raw", Priority: 10}, {Class: "conv", Codec: "lattice8+4", Quantized: "50", Priority: 5},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	code, out, logged := try("run", "--policy", "policy.yaml", "--print-policy", "--dataset", "mnist", "--data", pictures(t, 40, 20), "--batch", "10", "--model", "cnn")
	for _, line := range []string{
		"codec: auto\n", "# conv: conv1.weight, 144 values: lattice8+4 for 50 % of the slices, fp16 for the others, priority 5\n",
		"# norm+bias: conv1.bias to dense.bias, 58 values: raw, priority 10\n", "# dense: dense.weight, 15680 values: auto\n",
	} {
		if code != cli.ExitDone || !strings.Contains(out, line) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, line, out, logged)
		}
	}
	if again, err := parsePolicy([]byte(out)); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("what is printed reads as %+v, %v", again, err)
	}
}

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
		text, err := printPolicy(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsePolicy([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v: want %+v, printed as\n%s", got, err, want, text)
		}
	})
}

// TestBadPolicies shows that every fault of a policy is named, with its line.
func TestBadPolicies(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
	}{
		{"codek: raw\n", []string{`policy.yaml: line 1: unknown key "codek": did you mean "codec"?`}},
		{"codec: raw\ncodec: bf16\nquantised: 5\n", []string{`line 2: key "codec" is there twice`, `line 3: unknown key "quantised": did you mean "quantized"?`}},
		{"rules:\n- {class: conv, codex: raw}\n- {claas: conv}\n", []string{`line 2: unknown key "codex": did you mean "codec"?`, `line 3: unknown key "claas": did you mean "class"?`}},
		{"colour: red\n", []string{`unknown key "colour": want codec, exact, quantized or rules`}},
		{"codec: zip\nexact: int8\nquantized: 101\n", []string{`codec: "zip" is no codec: want auto or raw`, `exact: "int8": want raw, bf16 or fp16`, `quantized: "101": want 0 to 100 percent`}},
		{"rules:\n- {class: bias}\n- {priority: 5000}\n", []string{`rule 1, class: "bias": want dense, conv, embedding or norm+bias`, `rule 2, priority: 5000`}},
		{"rules: conv\n", []string{`line 1: key "rules": want a list`}},
		{"rules: [conv]\n", []string{`line 1: want a rule`}},
		{"rules:\n- {priority: high}\n", []string{`line 2: key "priority": "high": want a whole number`}},
		{"codec: [raw]\n", []string{`line 1: key "codec": want a plain value`}},
		{"codec:\n", []string{`line 1: key "codec": want a plain value`}},
		{"- codec\n", []string{"want a mapping"}},
		{"a: &x [*x]\n", []string{"policy.yaml: "}},
		{"rules: [" + strings.Repeat("{},", quant.MaxRules+1) + "]\n", []string{"65 rules, at most 64"}},
	} {
		code, out, text := try("run", "--policy", writeFile(t, "policy.yaml", c.file))
		for _, want := range c.want {
			if code != cli.ExitUsage || out != "" || !strings.Contains(text, want) {
				t.Errorf("%q: exit code %d, no %q in\n%s", c.file, code, want, text)
			}
		}
	}
	if code, _, text := try("run", "--policy", os.DevNull); code != cli.ExitUsage || !strings.Contains(text, "no regular file") {
		t.Errorf("a policy that can be read only once: exit code %d\n%s", code, text)
	}
	nowhere := writeFile(t, "policy.yaml", "rules: [{range: nowhere, codec: raw}]\n")
	code, _, text := try("run", "--policy", nowhere, "--dataset", "mnist", "--data", pictures(t, 40, 20), "--batch", "10")
	if code != cli.ExitUsage || !strings.Contains(text, `rule 1, range: the model has no range "nowhere"`) {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestPolicyAndCodec shows that of --policy and --codec or --quantized, which exclude
// each other, those count that count more, and that both from one source are refused.
func TestPolicyAndCodec(t *testing.T) {
	path := writeFile(t, "policy.yaml", "codec: int8\n")
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
		policy, err := s.policy()
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
		printed, err := printPolicy(policy)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parsePolicy([]byte(printed))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(policy) {
			t.Fatalf("%+v reads as %+v, %v; printed as\n%s", policy, again, err, printed)
		}
	})
}

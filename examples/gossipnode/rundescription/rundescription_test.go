package rundescription

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/description"
)

// given are the settings of a command line of run.
func given(t *testing.T, args ...string) (s settings.Settings, from cli.Origins) {
	t.Helper()
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) (err error) {
		from, err = s.Load(cmd)
		return err
	}}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return s, from
}

// others are settings of which each field differs from the defaults.
var others = []string{
	"--dataset=mnist", "--model=cnn", "--steps=70", "--optimizer=lion", "--lr=0.07", "--lr-floor=0.2", "--weight-decay=0.3", "--clip=2", "--beta2=0.97", "--schedule=constant", "--warmup=0.2", "--strategy=dpsgd",
	"--seed=9", "--operator=12D3KooWx", "--size=9x8", "--normalize=0.5/0.2", "--batch=8", "--every=3", "--codec=int8", "--quantized=50", "--augment=flip",
}

// TestWhatNobodySetIsTakenOver: a peer that sets nothing has the settings of the run.
func TestWhatNobodySetIsTakenOver(t *testing.T) {
	there, _ := given(t, others...)
	s, from := given(t)
	if len(Of(s, nil).Differences(Of(there, nil))) < len(others) {
		t.Fatalf("a setting that is no other: %v", Of(s, nil).Differences(Of(there, nil)))
	}
	taken, err := adopt(&s, from, Of(there, nil))
	if err != nil || len(taken) != len(others) {
		t.Errorf("took over %q, %v", taken, err)
	}
	if left := Of(s, nil).Differences(Of(there, nil)); len(left) > 0 {
		t.Errorf("what still differs: %v", left)
	}
	back, _ := given(t, "--epochs=7")
	if _, err := adopt(&there, cli.Origins{}, Of(back, nil)); err != nil || work(values{Settings: &there}) != "7 epochs" {
		t.Errorf("the work is %s, %v", work(values{Settings: &there}), err)
	}
	if _, err := adopt(&s, cli.Origins{}, description.Of("", description.Field{Name: "work", Value: "for ever"})); err == nil {
		t.Error("work that nobody can read was taken over")
	}
}

// TestWhatNobodyCanTrainOnIsAFault: whatever a member says that the run is, it is taken over or refused.
func TestWhatNobodyCanTrainOnIsAFault(t *testing.T) {
	values := []string{"", "x", "NaN", "-Inf", "-1", "0", "1e300", "9223372036854775807", "NaN epochs", "-1 epochs", "18446744073709551615 steps", "-1h", "0x0", "1/0", "NaN/NaN", "flock"}
	never := []string{"NaN", "-Inf", "-1", "NaN epochs", "-1 epochs", "-1h"}
	for _, args := range [][]string{{"--data=x"}, {"--dataset=table", "--data=x.csv", "--target=y"}} {
		for _, f := range fields() {
			for _, value := range values {
				s, from := given(t, args...)
				_, err := adopt(&s, from, description.Of("", description.Field{Name: f.name, Value: value}))
				fault := s.Validate(from)
				numeric := slices.Contains([]string{"work", "lr", "warmup", "lr-floor", "weight-decay", "clip", "beta2", "final-wait", "min-peers", "min-peers-wait", "batch"}, f.name)
				if numeric && slices.Contains(never, value) && err == nil && fault == nil {
					t.Errorf("%s is %q", f.name, value)
				}
			}
		}
	}
}

// TestWaitsThatAreTakenOverAreBounded: a member cannot have this peer wait for ever, and the user is
// told for how long it waits.
func TestWaitsThatAreTakenOverAreBounded(t *testing.T) {
	for value, want := range map[string]time.Duration{"48h0m0s": 24 * time.Hour, "1000000h": 24 * time.Hour, "5h0m0s": 5 * time.Hour} {
		s, from := given(t)
		taken, err := adopt(&s, from, description.Of("", description.Field{Name: "min-peers-wait", Value: value}, description.Field{Name: "final-wait", Value: value}))
		told := []string{"final-wait " + want.String(), "min-peers-wait " + want.String()}
		if err != nil || s.MinPeersWait != want || s.FinalWait != want || !slices.Equal(taken, told) {
			t.Errorf("%s: %s and %s, told %q, %v", value, s.MinPeersWait, s.FinalWait, taken, err)
		}
		own, from := given(t, "--min-peers-wait=72h")
		if _, err := adopt(&own, from, description.Of("", description.Field{Name: "min-peers-wait", Value: value})); err != nil || own.MinPeersWait != 72*time.Hour {
			t.Errorf("the user's own: %s, %v", own.MinPeersWait, err)
		}
	}
}

// TestNormalizationOfTheFlockIsTakenOver: one that would have found it with others has that of the run.
func TestNormalizationOfTheFlockIsTakenOver(t *testing.T) {
	for _, has := range []string{"0.25/0.5", ""} {
		there, _ := given(t, "--dataset=mnist", "--normalize="+has)
		s, from := given(t, "--dataset=mnist", "--normalize=flock")
		if _, err := adopt(&s, from, Of(there, nil)); err != nil || s.Normalize != has || len(Of(s, nil).Differences(Of(there, nil))) > 0 {
			t.Errorf("normalization %q, want %q: %v", s.Normalize, has, err)
		}
	}
}

// TestEachContradictionIsNamed: what was set otherwise stays, and is refused by its flag if
// models or work would suffer.
func TestEachContradictionIsNamed(t *testing.T) {
	here, _ := given(t)
	for _, arg := range others {
		flag, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		t.Run(flag, func(t *testing.T) {
			s, from := given(t, arg)
			if taken, err := adopt(&s, from, Of(here, nil)); err != nil || slices.ContainsFunc(taken, func(x string) bool { return strings.HasPrefix(x, flag+" ") }) {
				t.Fatalf("took over %q, %v", taken, err)
			}
			harmful, local := description.Split(Of(s, nil).Differences(Of(here, nil)))
			err := Contradiction(from, harmful)
			if own := slices.Contains([]string{"batch", "every", "codec", "quantized", "augment"}, flag); own {
				if err != nil || len(local) != 1 {
					t.Errorf("%v, local %v", err, local)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "leave out --"+flag) {
				t.Errorf("%v", err)
			}
			if coded, ok := err.(interface{ ExitWith() int }); !ok || coded.ExitWith() != cli.ExitUsage {
				t.Errorf("%v is no fault of usage", err)
			}
		})
	}
}

// TestAKeyInATokenIsAKey: who has the run's key from a token says that it has one, as who was given its file does.
func TestAKeyInATokenIsAKey(t *testing.T) {
	for _, allow := range []string{"", "list"} {
		there, here := settings.Settings{Network: settings.Network{RunKey: "run.key", Allow: allow}}, settings.Settings{}
		here.Allow, here.Secret = allow, []byte("key")
		if a, b := admission(values{Settings: &here}), admission(values{Settings: &there}); a != b || a == "everybody" || a == "a list" {
			t.Errorf("%q by a token, %q by a file", a, b)
		}
	}
}

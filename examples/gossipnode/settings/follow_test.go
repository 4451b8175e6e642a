package settings

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/follow"
)

// TestFollowing: what goes with data that arrive, and what does not.
func TestFollowing(t *testing.T) {
	s, err := parse(t, "", nil, "--follow=in", "--policy=best-effort", "--codec=int8", "--deadline=1m", "--replay=100")
	if err != nil || s.FollowPolicy() != follow.BestEffort {
		t.Fatalf("%v, %v", s.FollowPolicy(), err)
	}
	if p, err := s.CodecPolicy(); err != nil || p.Codec != "int8" {
		t.Errorf("models are coded by %+v, %v", p, err)
	}
	if err := s.Validate(cli.Origins{}); err != nil {
		t.Error(err)
	}
	if on := ForFollow(s); on.Passes() != followEpochs || on.Steps == 0 || on.Schedule != scheduleConstant {
		t.Errorf("%+v", on.trainSettings)
	}
	for want, args := range map[string][]string{
		"--policy":      {"--policy=best-effort"},
		"--price is":    {"--price=0.5"},
		"--replay is":   {"--replay=7"},
		"--price 2":     {"--follow=in", "--price=2"},
		"--replay 0":    {"--follow=in", "--replay=0"},
		"--until":       {"--follow=in", "--until=loss=1"},
		"strategy":      {"--follow=in", "--strategy=allreduce"},
		"not text":      {"--follow=in", "--dataset=text", "--model=gpt"},
		"want cost":     {"--follow=in", "--policy=weekly"},
		"--data is":     {"--follow=in", "--dataset=images"},
		"whole model":   {"--follow=in", "--accumulate=2"},
		"target is mis": {"--follow=in", "--dataset=csv"},
	} {
		s, err := parse(t, "", nil, args...)
		if err == nil {
			err = s.Validate(cli.Origins{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

func TestAims(t *testing.T) {
	for text, want := range map[string]peer.Until{
		"":                         {},
		"accuracy=0.97":            {Accuracy: 0.97},
		"accuracy=1":               {Accuracy: 1},
		"loss=2.5":                 {Loss: 2.5},
		"plateau=5 accuracy=0.5":   {Plateau: 5, Accuracy: 0.5},
		"loss=0.1 plateau=1048576": {Loss: 0.1, Plateau: 1 << 20},
	} {
		got, err := untilSettings{Until: strings.Fields(text), Deadline: time.Minute}.Aim()
		if want.Deadline = time.Minute; err != nil || got.Accuracy != want.Accuracy || got.Loss != want.Loss || got.Plateau != want.Plateau || got.Deadline != want.Deadline {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"accuracy", "accuracy=", "accuracy=97", "accuracy=0", "accuracy=-1", "accuracy=NaN", "accuracy=97%", "loss=0", "loss=Inf", "loss=x",
		"plateau=0", "plateau=2.5", "plateau=1e9", "plateau=-3", "plateau", "rubbish=1", "=", "accuracy=0.5 accuracy=0.6",
	} {
		s := untilSettings{Until: strings.Fields(text)}
		if faults := s.faults(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "until") {
			t.Errorf("%q: %v", text, faults)
		}
	}
	if faults := (untilSettings{Deadline: -1}).faults(); len(faults) != 1 {
		t.Errorf("a deadline below zero: %v", faults)
	}
	var s Settings
	s.Digests, s.Until = -1, []string{"loss=1"}
	if faults := s.ends(); len(faults) != 1 {
		t.Errorf("an aim that nobody hears of: %v", faults)
	}
}

func TestTasksGoWithoutTheWorkOfEpochs(t *testing.T) {
	for _, set := range []func(*Settings){
		func(s *Settings) { s.Strategy = StrategyAllReduce },
		func(s *Settings) { s.HoldAndTrain = true },
		func(s *Settings) { s.Final = FinalMerge },
		func(s *Settings) { s.Deadline, s.GlobalBatch = 1, 8 },
	} {
		var s Settings
		s.Strategy, s.TaskFile = StrategyADPSGD, "tasks.yaml"
		if faults := s.ends(); len(faults) > 0 {
			t.Errorf("refused: %v", faults)
		}
		if set(&s); len(s.ends()) != 1 {
			t.Errorf("%+v: %v", s, s.ends())
		}
	}
}

func TestWhatEndedARun(t *testing.T) {
	var s Settings
	if by := s.StoppedBy("work"); by != "epochs" {
		t.Error(by)
	}
	s.Steps = 3
	if by := s.StoppedBy("work"); by != "steps" || s.StoppedBy("plateau") != "plateau" {
		t.Error(by)
	}
}

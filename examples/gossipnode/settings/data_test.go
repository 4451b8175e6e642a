package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// TestDataConfig shows that the flags mean what they say.
func TestDataConfig(t *testing.T) {
	s := dataSettings{Dataset: "images", Data: "dir", Shard: "files", Part: "1/3", Normalize: "0.5/0.25", Size: "96x64", Memory: 3, Seed: 7}
	got, err := s.DataConfig(9)
	want := dataset.Config{
		Name: "images", Dir: "dir", Seed: 7, Part: 1, Parts: 3, Shard: dataset.Shard{Files: true}, PeerSeed: 9, Memory: 3 << 20,
		Norm: []dataset.Normalization{{Mean: 0.5, Scale: 0.25}}, Width: 96, Height: 64,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for name, want := range map[string]dataset.Augment{"auto": {Flip: true, Crop: true}, "none": {}, "crop": {Crop: true}} {
		if got := (dataSettings{Dataset: "cifar10", Augment: name}).Augmentation(); got != want {
			t.Errorf("--augment %s of cifar10 is %v", name, got)
		}
	}
}

// TestDecodeOnce shows that decoded data is kept where the flag says so, of pictures and of tables, and nowhere else.
func TestDecodeOnce(t *testing.T) {
	for _, args := range [][]string{{"--decode-once"}, nil} {
		var s Settings
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		pictures, err := s.DataConfig(0)
		if table := s.Rows().Reading(); err != nil || (pictures.Decoded != nil) != (args != nil) || (table.Decoded != nil) != (args != nil) {
			t.Errorf("%q: pictures %v, tables %v, error %v", args, pictures.Decoded, table.Decoded, err)
		}
	}
}

// TestDataSettingsRefused shows that what cannot be of the data is said.
func TestDataSettingsRefused(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"run --dataset images", "--dataset images needs --data"},
		{"run --augment rotate", `--augment "rotate": want auto, none, flip, crop or flip+crop`},
		{"run --normalize 1", `--normalize "1": want MEAN/SCALE`},
		{"run --size 64", `--size "64": want WxH, as in 96x64`},
		{"run --size 2000x2000", "of at most 1048576 pixels"},
		{"run --memory 0", "--memory 0: want 1 to"},
		{"run --shard files", "say with --part I/N"},
	} {
		if code, out, err := try(strings.Fields(c.line)...); code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", c.line, code, out, err, cli.ExitUsage, c.want)
		}
	}
}

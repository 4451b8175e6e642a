package nn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestNamed: children are called by their names wherever they have places, and what is fused keeps its name.
func TestNamed(t *testing.T) {
	m := built(t, []int{4, 4, 2},
		nn.Named("features", nn.Sequential(nn.Named("conv1", nn.Conv2d(2, 2, 1, nn.Conv{NoBias: true})), nn.ReLU(), nn.Conv2d(2, 2, 1, nn.Conv{NoBias: true}))),
		nn.Named("", nn.ResidualVia(nn.Named("downsample", nn.Sequential(nn.BatchNorm(2))), nn.WithStart(nn.Named("bn1", nn.GroupNorm(1, 2)), nn.Fill(1)))),
		nn.ResidualVia(nn.GroupNorm(1, 2), nn.Named("", nn.GroupNorm(2, 2))),
		nn.Concat(nn.Named("left", nn.LinearNoBias(2, 1)), nn.LinearNoBias(2, 1)),
		nn.Flatten(), nn.Named("fc", nn.Linear(32, 3)))
	var names []string
	for _, r := range m.Layout().Ranges() {
		names = append(names, r.Name)
	}
	want := strings.Fields(`features.conv1.weight features.2.weight bn1.weight bn1.bias downsample.0.weight downsample.0.bias
		downsample.0.running_mean downsample.0.running_var downsample.0.num_batches_tracked
		2.weight 2.bias 2.shortcut.weight 2.shortcut.bias 3.left.weight 3.1.weight fc.weight fc.bias`)
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	twice := built(t, []int{4, 4, 2}, nn.Named("a", nn.Named("b", nn.Sequential(nn.Conv2d(2, 2, 1, nn.Conv{}), nn.ReLU(), nn.LinearNoBias(2, 2)))),
		nn.Named("", nn.Named("c", nn.Conv2d(2, 2, 1, nn.Conv{NoBias: true}))), nn.ReLU(), nn.Named("d", nn.Named("", nn.LinearNoBias(2, 2))))
	var parts []string
	for _, p := range twice.Parts() {
		parts = append(parts, p.Name)
	}
	if want := []string{"a.b.0.Conv2d(2, 2, 1)", "a.b.2.Linear(2, 2)", "c.Conv2d(2, 2, 1)", "d.Linear(2, 2)"}; !slices.Equal(parts, want) {
		t.Errorf("%q", parts)
	}
	if _, err := nn.Sequential(nn.Named("conv1", nn.Linear(3, 2))).Build(2); err == nil || !strings.Contains(err.Error(), "layer 0 (Linear(3, 2))") {
		t.Error(err)
	}
	if _, err := nn.Sequential(nn.Named("a", nn.Linear(2, 2)), nn.Named("a", nn.Linear(2, 2))).Build(2); err == nil {
		t.Error("two layers of one name")
	}
}

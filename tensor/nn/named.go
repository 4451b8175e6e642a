package nn

import "strconv"

// Named is a layer whose parameters lie under a name, where they would lie under the layer's place in the Sequential,
// Residual, Checkpoint or Concat that it is in: as a child of a torch.nn.Module with attributes. With the name "" they
// have no name but their own, as if the layers within the layer were the Module's own children. A name of a Named layer
// comes before the other: Named("a", Named("b", layer)) is Named("a.b", layer).
func Named(name string, layer Layer) Layer {
	if n, ok := layer.(named); ok {
		return named{n.Layer, under(name, n.name)}
	}
	return named{layer, name}
}

type named struct {
	Layer
	name string
}

func (l named) String() string { return nameOf(l.Layer) }

// childOf returns the layer in a place of another, and the name of its parameters there.
func childOf(layer Layer, place int) (child Layer, name string) {
	if n, ok := layer.(named); ok {
		return n.Layer, n.name
	}
	return layer, strconv.Itoa(place)
}

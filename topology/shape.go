package topology

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is the kind of graph that the links of a view form. All members of a run must have
// the same.
type Shape uint8

const (
	// Exponential links reach 1, 3, 5, 9, 17, ... places along the ring: about 2·log2(n) of
	// each member, and fast mixing.
	Exponential Shape = iota
	// Ring links each member to the two beside it. The classes differ by one member at most,
	// and alternate: if their number is odd, one member more has its place beside another of its
	// class, and is linked to the two on both sides of it.
	Ring
	// Tree links each member to one above it, of the other class, and up to two below, level by level, those with
	// the better uplinks first and then in the view's order. Where one class is used up, what is left of the other is spread over it.
	Tree
	// Star links one passive member, the hub, to all others. It stays hub as long as it is there.
	Star
)

// Shapes are all shapes.
func Shapes() []Shape { return []Shape{Exponential, Ring, Tree, Star} }

// String is the shape's name, as ParseShape reads it.
func (s Shape) String() string {
	if int(s) >= len(shapeNames) {
		return "unknown shape"
	}
	return shapeNames[s]
}

var shapeNames = [...]string{Exponential: "exponential", Ring: "ring", Tree: "tree", Star: "star"}

// ParseShape finds a shape by its name.
func ParseShape(name string) (Shape, error) {
	i := slices.Index(shapeNames[:], name)
	if i < 0 {
		return 0, fmt.Errorf("topology %q: want one of %s", name, strings.Join(shapeNames[:], ", "))
	}
	return Shape(i), nil
}

// surplus is the fewest members that must leave the larger class for the smaller one. One peer
// alone needs no partner.
func (s Shape) surplus(larger, smaller int) int {
	switch {
	case larger+smaller < 2:
		return 0
	case s == Ring:
		return max(larger-smaller, 0) / 2
	}
	// Each change takes one from larger, and adds maxRatio to its bound, maxRatio*smaller.
	return max(larger-maxRatio*smaller+maxRatio, 0) / (maxRatio + 1)
}

// treeWidth is how many members a member of a tree has below it.
const treeWidth = 2

// grow makes the neighbours of each member of a tree, as places in the view: the one above it
// first, then those below. Members with better uplinks are nearer to the root, since those in the middle carry
// most; the root is passive, so that it answers.
func grow(v *View) [][]int {
	tree, class := make([][]int, v.Len()), bySite(v)[0] // there are no sites in a tree
	for _, members := range class {
		slices.SortFunc(members, byUplink(v))
	}
	hang := func(below, above int) {
		tree[above] = append(tree[above], below)
		tree[below] = append(tree[below], above)
	}
	level := class[Passive][:1]
	placed := [Passive + 1][]int{Passive: level}
	class[Passive] = class[Passive][1:]
	for below := Active; len(level) > 0 && len(class[below]) > 0; below = below.opposite() {
		next := class[below][:min(treeWidth*len(level), len(class[below]))]
		for i, member := range next {
			hang(member, level[i/treeWidth])
		}
		placed[below] = slices.Concat(placed[below], next)
		class[below] = class[below][len(next):]
		level = next
	}
	for _, role := range []Role{Active, Passive} { // at most one has members left
		above := placed[role.opposite()]
		for i, member := range class[role] {
			hang(member, above[i%len(above)])
		}
	}
	return tree
}

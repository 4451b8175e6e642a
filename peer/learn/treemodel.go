package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// How the leaves of all trees make the outputs of a row.
const (
	meanOfLeaves = "mean"     // their mean: a number, or the probabilities of classes
	sumOfLeaves  = "sum"      // their sum
	oddsOfLeaves = "logistic" // their sum is the logarithm of the odds of class 1 of two
	softOfLeaves = "softmax"  // a sum for each class; tree i counts for class i mod classes
)

// TreeModel has one tree or many: the model of Tree, Forest and Boost.
type TreeModel struct {
	combine string
	classes int // 0: predicts a number
	base    []float64
	columns []treeColumn
	roots   []int32
	nodes   []treeNode
	sets    []binSet
	shares  []float64 // probabilities of the leaves with more than two classes
	gain    []float64
}

// treeColumn is a column of the model. Categories are numbered as in binColumn.
type treeColumn struct {
	Name     string   `json:"name"`
	Category bool     `json:"category,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// treeNode is a node; its left child is the next node.
type treeNode struct {
	value  float64 // the threshold, or an index into sets; a leaf's value, or an index into shares
	column int32   // -1: a leaf
	right  uint32  // index of the right child; with goesLeft, missing values go left
}

const goesLeft = 1 << 31

// newTreeModel is a model without trees.
func newTreeModel(b *binned, combine string, classes int, base []float64) *TreeModel {
	m := &TreeModel{combine: combine, classes: classes, base: base, gain: make([]float64, len(b.columns))}
	for _, c := range b.columns {
		m.columns = append(m.columns, treeColumn{c.name, c.category, c.values})
	}
	return m
}

// add adds a grown tree to the model; leaf computes the value of a leaf.
func (m *TreeModel) add(b *binned, t *tree, leaf func(sums []float64) float64) {
	m.roots = append(m.roots, int32(len(m.nodes)))
	unit := t.grad.gUnit * t.grad.gUnit / t.grad.hUnit
	stride := t.grad.stride()
	var take func(id int32)
	take = func(id int32) {
		n := &t.nodes[id]
		at := len(m.nodes)
		if n.left == 0 {
			m.nodes = append(m.nodes, treeNode{value: leaf(t.sums[int(id)*stride : (int(id)+1)*stride]), column: -1})
			return
		}
		c := &b.columns[n.split.column]
		new := treeNode{column: n.split.column}
		switch {
		case c.category:
			new.value = float64(len(m.sets))
			m.sets = append(m.sets, n.split.left)
		case int(n.split.bin) < len(c.edges):
			new.value = c.edges[n.split.bin]
		default:
			new.value = math.MaxFloat64
		}
		m.gain[n.split.column] += n.split.gain * unit
		m.nodes = append(m.nodes, new)
		take(n.left)
		m.nodes[at].right = uint32(len(m.nodes))
		if n.split.left.has(uint8(c.bins - 1)) {
			m.nodes[at].right |= goesLeft
		}
		take(n.right)
	}
	take(0)
}

// Outputs is 1 for a number, else the number of classes.
func (m *TreeModel) Outputs() int { return max(m.classes, 1) }

// Trees is the number of trees.
func (m *TreeModel) Trees() int { return len(m.roots) }

// Gain is the total gain of all splits by each column, a measure of its importance, in the unit of the loss. Only
// columns of one model can be compared.
func (m *TreeModel) Gain() map[string]float64 {
	gains := make(map[string]float64, len(m.columns))
	for i, c := range m.columns {
		gains[c.Name] = m.gain[i]
	}
	return gains
}

// treeInput is one input column: numbers, or the bins of categories.
type treeInput struct {
	numbers []float64
	bins    []uint8
}

func (m *TreeModel) inputs(features *table.Batch) ([]treeInput, error) {
	inputs := make([]treeInput, len(m.columns))
	for i, c := range m.columns {
		column := features.FindNear(c.Name, i)
		switch {
		case column == nil:
			return nil, fmt.Errorf("learn: there is no column %q, which the model needs", c.Name)
		case c.Category != (column.Kind == table.Category):
			return nil, fmt.Errorf("learn: column %q is a %s, and was another kind when the model was fitted", c.Name, column.Kind)
		case c.Category && len(column.Codes) != features.Rows || !c.Category && len(column.Numbers) != features.Rows:
			return nil, fmt.Errorf("learn: column %q does not have %d rows", c.Name, features.Rows)
		case c.Category:
			bins := binColumn{category: true, values: c.Values}
			inputs[i].bins = bins.fill(make([]uint8, 0, features.Rows), column)
		default:
			inputs[i].numbers = column.Numbers
		}
	}
	return inputs, nil
}

// leaf finds the leaf of a row in a tree.
func (m *TreeModel) leaf(root int32, inputs []treeInput, row int) *treeNode {
	at := uint32(root)
	for {
		n := &m.nodes[at]
		if n.column < 0 {
			return n
		}
		in := &inputs[n.column]
		left := false
		if in.bins != nil {
			left = m.sets[int(n.value)].has(in.bins[row])
		} else if x := in.numbers[row]; missing(x) {
			left = n.right&goesLeft != 0
		} else {
			left = x <= n.value
		}
		if left {
			at++
		} else {
			at = n.right &^ goesLeft
		}
	}
}

// predictRows is how many rows go through one tree before the next tree: so the tree stays in the cache.
const predictRows = 64

// Predict appends a number for each row, or a probability for each class.
func (m *TreeModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	inputs, err := m.inputs(features)
	if err != nil {
		return dst, err
	}
	k := max(len(m.base), 1)
	sums := make([]float64, k*predictRows)
	for from := 0; from < features.Rows; from += predictRows {
		rows := min(predictRows, features.Rows-from)
		for i := range rows {
			copy(sums[i*k:(i+1)*k], m.base)
		}
		for t, root := range m.roots {
			for i := range rows {
				value := m.leaf(root, inputs, from+i).value
				if m.combine == meanOfLeaves && k > 1 {
					for c, share := range m.shares[int(value):][:k] {
						sums[i*k+c] += share
					}
				} else {
					sums[i*k+t%k] += value
				}
			}
		}
		for i := range rows {
			dst = m.finish(dst, sums[i*k:(i+1)*k])
		}
	}
	return dst, nil
}

// finish appends the outputs of a row to dst.
func (m *TreeModel) finish(dst, sums []float64) []float64 {
	switch m.combine {
	case meanOfLeaves:
		for i := range sums {
			sums[i] /= float64(len(m.roots))
		}
		if m.classes == 2 {
			return append(dst, 1-sums[0], sums[0])
		}
	case oddsOfLeaves:
		return append(dst, sigmoid(-sums[0]), sigmoid(sums[0]))
	case softOfLeaves:
		softmax(sums)
	}
	return append(dst, sums...)
}

// treeFile is the JSON of a TreeModel: a list for each field of the nodes.
type treeFile struct {
	Combine string       `json:"combine"`
	Classes int          `json:"classes,omitempty"`
	Base    []float64    `json:"base"`
	Columns []treeColumn `json:"columns"`
	Gain    []float64    `json:"gain"`
	Roots   []int32      `json:"roots"`
	Column  []int32      `json:"column"`
	Right   []uint32     `json:"right"`
	Value   []float64    `json:"value"`
	Missing []byte       `json:"missing"`        // a bit for each node: whether missing values go left
	Sets    []byte       `json:"sets,omitempty"` // 32 bytes each
	Shares  []float64    `json:"shares,omitempty"`
}

// MarshalJSON writes the model: nodes as lists, sets of categories in base64.
func (m *TreeModel) MarshalJSON() ([]byte, error) {
	f := treeFile{Combine: m.combine, Classes: m.classes, Base: m.base, Columns: m.columns, Gain: m.gain, Roots: m.roots, Shares: m.shares}
	f.Missing = make([]byte, (len(m.nodes)+7)/8)
	for i, n := range m.nodes {
		f.Column = append(f.Column, n.column)
		f.Right = append(f.Right, n.right&^goesLeft)
		f.Value = append(f.Value, n.value)
		if n.right&goesLeft != 0 {
			f.Missing[i/8] |= 1 << (i % 8)
		}
	}
	for _, s := range m.sets {
		for bin := 0; bin < 256; bin += 8 {
			f.Sets = append(f.Sets, byte(s[bin/64]>>(bin%64)))
		}
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON wrote. It returns an error if a walk through a tree might not end.
func (m *TreeModel) UnmarshalJSON(data []byte) error {
	var f treeFile
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	n := len(f.Column)
	if len(f.Right) != n || len(f.Value) != n || len(f.Missing) != (n+7)/8 || len(f.Sets)%32 != 0 || len(f.Gain) != len(f.Columns) {
		return errors.New("lists of unequal lengths")
	}
	new := TreeModel{combine: f.Combine, classes: f.Classes, base: f.Base, columns: f.Columns, gain: f.Gain, roots: f.Roots, shares: f.Shares}
	for i := range n {
		right := f.Right[i]
		if f.Missing[i/8]>>(i%8)&1 != 0 {
			right |= goesLeft
		}
		new.nodes = append(new.nodes, treeNode{f.Value[i], f.Column[i], right})
	}
	for set := range slices.Chunk(f.Sets, 32) {
		var s binSet
		for i, b := range set {
			s[i/8] |= uint64(b) << (i % 8 * 8)
		}
		new.sets = append(new.sets, s)
	}
	if err := new.check(); err != nil {
		return err
	}
	*m = new
	return nil
}

// check makes sure that each walk ends at a leaf: children must come after their parents.
func (m *TreeModel) check() error {
	k := len(m.base)
	single := k == 1 && (m.combine == sumOfLeaves && m.classes == 0 || m.combine == oddsOfLeaves && m.classes == 2 || m.combine == meanOfLeaves && (m.classes == 0 || m.classes == 2))
	several := k > 2 && k == m.classes && (m.combine == softOfLeaves || m.combine == meanOfLeaves)
	if !single && !several {
		return fmt.Errorf("%d sums of leaves, %q, for %d classes", k, m.combine, m.classes)
	}
	for _, root := range m.roots {
		if root < 0 || int(root) >= len(m.nodes) {
			return fmt.Errorf("a tree begins at node %d of %d", root, len(m.nodes))
		}
	}
	for _, c := range m.columns {
		if len(c.Values) > maxBins-1 {
			return fmt.Errorf("column %q has %d categories", c.Name, len(c.Values))
		}
	}
	for i, n := range m.nodes {
		right := int(n.right &^ goesLeft)
		switch {
		case n.column >= int32(len(m.columns)):
			return fmt.Errorf("node %d is split by column %d of %d", i, n.column, len(m.columns))
		case n.column >= 0 && (right <= i+1 || right >= len(m.nodes)):
			return fmt.Errorf("node %d has node %d of %d on its right", i, right, len(m.nodes))
		case n.column >= 0 && m.columns[n.column].Category && !(n.value >= 0 && n.value < float64(len(m.sets))):
			return fmt.Errorf("node %d has set %v of %d", i, n.value, len(m.sets))
		case n.column < 0 && several && m.combine == meanOfLeaves && !(n.value >= 0 && n.value <= float64(len(m.shares)-k)):
			return fmt.Errorf("node %d has shares at %v of %d", i, n.value, len(m.shares))
		}
	}
	return nil
}

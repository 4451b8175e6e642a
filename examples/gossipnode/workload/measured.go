package workload

import "github.com/seed-97356399/murmuration/examples/zoo/dataset"

// Measured is a supply of batches of any size, put together from single pictures.
type Measured struct {
	Singly dataset.Batches // of one picture each
	one    dataset.Batch
}

// Fill fills a batch with so many pictures.
func (m *Measured) Fill(b *dataset.Batch, pictures int) error {
	for row := range pictures {
		if err := m.Singly.Next(&m.one); err != nil {
			return err
		}
		inputs := len(m.one.X)
		if row == 0 {
			b.Resize(pictures, inputs)
		}
		copy(b.X[row*inputs:], m.one.X)
		b.Labels[row] = m.one.Labels[0]
	}
	return nil
}

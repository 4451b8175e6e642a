package nets

import "github.com/seed-97356399/murmuration/tensor/nn"

// GRU is the name of the recurrent language model.
const GRU = "gru"

// NewGRU makes a byte-level language model like NewGPT's with one recurrent layer of Width hidden values in place of
// blocks: it reads Context bytes in their order.
func NewGRU(s Sizes) (Model, error) {
	model, err := GRUOf(s)
	if err != nil {
		return nil, err
	}
	return networkOf(model), nil
}

// GRUOf is the model of NewGRU without its trainer.
func GRUOf(s Sizes) (*nn.Model, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.WithDefaults()
	return nn.Sequential(nn.WithStart(nn.Embedding(Vocabulary, s.Width), nn.Normal(0.1)), nn.GRU(s.Width, s.Width), nn.Linear(s.Width, Vocabulary)).Build(s.Context)
}

// ReadsText tells whether a model learns the bytes of a text, not pictures.
func ReadsText(name string) bool { return name == GPT || name == GRU }

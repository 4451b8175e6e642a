package tensor

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// headerParser reads the header token by token: unlike json.Unmarshal, it detects names that occur twice.
type headerParser struct{ dec *json.Decoder }

// object reads an object: it calls field after each key, to read the key's value.
func (p *headerParser) object(what string, field func(key string) error) error {
	if err := p.open(what, '{'); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.text("a key of " + what)
		if err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := p.token(what)
	return err
}

func (p *headerParser) entry(name string) (fileEntry, error) {
	e := fileEntry{name: name}
	if name == "" || len(name) > maxNameLen {
		return e, badFile(name, "a name has %d bytes: it must have 1 to %d", len(name), maxNameLen)
	}
	var offsets []uint64
	seen := make(map[string]bool, 3)
	err := p.object("a tensor", func(key string) (err error) {
		if seen[key] {
			return badFile(name, "%s is there twice", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			e.dtype, err = p.text(key)
		case "shape":
			e.shape, err = p.shape(name)
		case "data_offsets":
			offsets, err = p.numbers(key, 2)
		default:
			err = badFile(name, "unknown key %.64q", key)
		}
		return err
	})
	if err != nil {
		var bad *FormatError
		if errors.As(err, &bad) && bad.Tensor == "" {
			bad.Tensor = name
		}
		return e, err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			return e, badFile(name, "%s is missing", key)
		}
	}
	if len(offsets) != 2 {
		return e, badFile(name, "%d data_offsets, not 2", len(offsets))
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, e.check()
}

func (p *headerParser) shape(name string) ([]int, error) {
	dims, err := p.numbers("shape", maxDims)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(dims))
	for i, d := range dims {
		if d > math.MaxInt {
			return nil, badFile(name, "dimension %d: more than %d values", d, maxLen)
		}
		shape[i] = int(d)
	}
	return shape, nil
}

func (p *headerParser) metadata() (map[string]string, error) {
	metadata := make(map[string]string)
	err := p.object(reservedName, func(key string) error {
		if _, ok := metadata[key]; ok {
			return badFile("", "metadata key %.64q is there twice", key)
		}
		value, err := p.text("a value of " + reservedName)
		metadata[key] = value
		return err
	})
	return metadata, err
}

// numbers reads an array of at most limit integers, none of them negative.
func (p *headerParser) numbers(what string, limit int) ([]uint64, error) {
	if err := p.open(what, '['); err != nil {
		return nil, err
	}
	var list []uint64
	for p.dec.More() {
		if len(list) == limit {
			return nil, badFile("", "%s has more than %d numbers", what, limit)
		}
		t, err := p.token(what)
		if err != nil {
			return nil, err
		}
		number, ok := t.(json.Number)
		if !ok {
			return nil, badFile("", "%s holds what is no number", what)
		}
		n, err := strconv.ParseUint(number.String(), 10, 64)
		if err != nil {
			return nil, badFile("", "%s: %.64q is no integer from 0 to 2^64-1", what, number.String())
		}
		list = append(list, n)
	}
	_, err := p.token(what)
	return list, err
}

func (p *headerParser) open(what string, delim json.Delim) error {
	t, err := p.token(what)
	if err != nil {
		return err
	}
	if t != delim {
		return badFile("", "%s does not begin with %v", what, delim)
	}
	return nil
}

func (p *headerParser) text(what string) (string, error) {
	t, err := p.token(what)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", badFile("", "%s is no string", what)
	}
	return s, nil
}

func (p *headerParser) token(what string) (json.Token, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, badFile("", "%s: %v", what, err)
	}
	return t, nil
}

package table

// rowsOf is a batch of a column of numbers "n" and one of categories "c", "" missing.
func rowsOf(first int64, numbers []float64, texts []string) *Batch {
	b := &Batch{Rows: len(numbers), First: first, Columns: []Column{
		{Name: "n", Kind: Number, Numbers: numbers},
		{Name: "c", Kind: Category, Values: []string{"in no row"}},
	}}
	codes := map[string]int32{}
	for _, text := range texts {
		code, ok := codes[text]
		switch {
		case text == "":
			code = Missing
		case !ok:
			code = int32(len(b.Columns[1].Values))
			codes[text] = code
			b.Columns[1].Values = append(b.Columns[1].Values, text)
		}
		b.Columns[1].Codes = append(b.Columns[1].Codes, code)
	}
	return b
}

var rowsSchema = &Schema{Fields: []Field{{Name: "n"}, {Name: "c", Kind: Category}}}

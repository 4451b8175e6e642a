package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/peer/table"
)

// fitted serves a model file of package learn.
type fitted struct{ learn.File }

func (f fitted) About() serve.About {
	return serve.About{Kind: "linear", Version: "1", Fields: f.Features, Target: f.Target, Outputs: f.Model.Outputs()}
}

func (f fitted) Predict(dst []float64, rows serve.Rows) ([]float64, error) {
	return f.File.Predict(dst, rows.Table)
}

// A service serves a model that it has fitted, beside its other pages. One that trains swaps in a copy of its
// parameters from time to time, or lets Checks do so.
func ExampleHandler() {
	rows := learn.Rows{
		Features: &table.Batch{Rows: 4, Columns: []table.Column{{Name: "size", Numbers: []float64{50, 80, 100, 120}}}},
		Target:   []float64{110, 170, 210, 250},
	}
	model, err := (&learn.Linear{}).Fit(context.Background(), table.Alone{}, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	models := new(serve.Holder)
	models.Swap(fitted{learn.File{Model: model, Target: "price", Features: []table.Field{{Name: "size"}}}}, 1)

	mux := http.NewServeMux()
	mux.Handle("/prices/", http.StripPrefix("/prices", serve.Handler(models, "a token that nobody guesses")))

	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/prices/predict", strings.NewReader(`[{"size": 64}]`))
	r.Header.Set("Authorization", "Bearer a token that nobody guesses")
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), `"predictions":[{"value":13`))
	// Output: 200 true
}

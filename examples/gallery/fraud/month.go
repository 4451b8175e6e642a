package main

import (
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// month is n transactions of a service, in 1 of 20 of which there is fraud: nine times of ten of the service's own kind. Service -1
// stands for all, with every kind alike.
func month(service int, seed uint64, n int) *table.Batch {
	random := rand.New(rand.NewPCG(seed, 7))
	number := func(name string) table.Column { return table.Column{Name: name, Numbers: make([]float64, n)} }
	amount, hour, days, burst := number("amount"), number("hour"), number("account_days"), number("last_hour")
	shop := table.Column{Name: "shop", Kind: table.Category, Codes: make([]int32, n), Values: []string{"food", "travel", "gift cards", "games"}}
	fraud := table.Column{Name: "fraud", Kind: table.Category, Codes: make([]int32, n), Values: []string{"no", "yes"}}
	for i := range n {
		amount.Numbers[i], hour.Numbers[i] = 5+500*random.ExpFloat64(), float64(random.IntN(24))
		days.Numbers[i], burst.Numbers[i], shop.Codes[i] = float64(1+random.IntN(2000)), float64(random.IntN(6)), int32(random.IntN(4))
		if random.IntN(20) > 0 {
			continue
		}
		fraud.Codes[i] = 1
		kind := service
		if service < 0 || random.IntN(10) == 0 {
			kind = random.IntN(services)
		}
		switch kind {
		case 0: // large sums at night
			amount.Numbers[i], hour.Numbers[i] = 900+400*random.ExpFloat64(), float64(random.IntN(5))
		case 1: // new accounts that travel
			days.Numbers[i], shop.Codes[i] = float64(1+random.IntN(60)), 1
		case 2: // gift cards of about fifty
			amount.Numbers[i], shop.Codes[i] = 45+10*random.Float64(), 2
		case 3: // many at once
			burst.Numbers[i] = float64(4 + random.IntN(8))
		}
	}
	return &table.Batch{Rows: n, Columns: []table.Column{amount, hour, days, burst, shop, fraud}}
}

// auc is the chance that a fraud of the next month of all scores above another transaction.
func auc(model learn.File) (float64, error) {
	next := month(-1, 99, 6000)
	scores, err := model.Predict(nil, next)
	if err != nil {
		return 0, err
	}
	order := make([]int, next.Rows)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if scores[2*a+1] < scores[2*b+1] {
			return -1
		}
		return 1
	})
	var above, frauds, others float64
	for _, i := range order {
		if next.Columns[5].Codes[i] == 1 {
			above, frauds = above+others, frauds+1
		} else {
			others++
		}
	}
	return above / (frauds * others), nil
}

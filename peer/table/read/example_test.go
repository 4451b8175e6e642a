package read_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/peer/table/read"
)

// Columns are numbers or categories by what is in them; a row that cannot be read is set aside, and told.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "flights")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "flights.csv")
	text := "carrier,distance,delay\nUA,1400,11\nDL,762,\nUA,719,12,7\nAA,1089,33\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	rows, err := read.Open(context.Background(), []string{path}, read.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range rows.Schema().Fields {
		fmt.Println(f.Name, f.Kind)
	}
	for batch, err := range rows.Rows(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		carriers, delays := batch.Find("carrier"), batch.Find("delay")
		for row := range batch.Rows {
			fmt.Println(batch.Key(row), carriers.Values[carriers.Codes[row]], delays.Numbers[row])
		}
	}
	for _, d := range rows.Damaged().First {
		fmt.Printf("line %d: %s\n", d.Line, d.Reason)
	}
	// Output:
	// carrier category
	// distance number
	// delay number
	// 0 UA 11
	// 1 DL NaN
	// 3 AA 33
	// line 4: 4 fields, not 3
}

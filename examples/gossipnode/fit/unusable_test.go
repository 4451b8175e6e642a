package fit

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// TestRowsThatCannotBeUsed: another start mends none of these.
func TestRowsThatCannotBeUsed(t *testing.T) {
	file := clitest.WriteFile(t, "x.csv", "user,item,n,m,none\na,x,1,2,\n,x,2,4,\nb,y,3,6,\na,y,4,8,\n")
	for line, want := range map[string]string{
		"--learner implicit-als --target n --drop m":                                      "row 1 has no user or no item",
		"--learner als --user who --target n":                                             `there is no column "who"`,
		"--learner als --user item --target n --factors 20000":                            "2 items, at most 0 with 20000 factors",
		"--learner linear --target n --shard by=where":                                    `dividing rows by column "where": the table has no such column`,
		"--learner linear --target n":                                                     `column "none" has no value in any row of any member`,
		"--learner linear --target n --drop none --apart vote --split row:3/4":            "votes are for classes",
		"--learner tree --target n --drop none --apart mean-coefficients --split row:3/4": "no coefficients that could be averaged",
		"--learner pca --drop none --components 50":                                       "50 components of 4 columns",
		"--learner lda --text item":                                                       "0 words are in 20 documents",
	} {
		args := append([]string{"fit", "--in-process", "--peers", "2", "--data", file}, strings.Fields(line)...)
		if code, _, stderr := program.Try(args...); code != cli.ExitConfig || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

// TestUncombinable: models that cannot be combined as --apart wants are refused before anything is fitted.
func TestUncombinable(t *testing.T) {
	for apart, learner := range map[string]string{"vote": "linear", "mean-coefficients": "tree"} {
		trial, err := NewTrial(map[string][]string{"data": {houses}, "target": {"price"}, "learner": {learner}, "apart": {apart}, "split": {"row:3/4"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := trial.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = trial.Score(t.Context(), trial, counted{table.Alone{}, func(name string) {
			if strings.HasPrefix(name, "fit/prepare") || strings.HasPrefix(name, "fit/learn") {
				t.Errorf("%s: %s was summed", apart, name)
			}
		}}, 0, 1)
		if !errors.Is(err, learn.ErrSettings) {
			t.Errorf("%s: %v", apart, err)
		}
	}
}

// TestNumbersThatCannotBeAddedUp: the error names the column, and what to do with it.
func TestNumbersThatCannotBeAddedUp(t *testing.T) {
	file := clitest.WriteFile(t, "x.csv", "n,big,y\n1,1e160,1\n2,-1.7e308,2\n3,1.7e308,2\n4,1e160,1\n"+strings.Repeat("5,3,2\n6,4,1\n", 20))
	for _, line := range []string{
		"fit --learner linear --target y", "fit --learner logistic --target y>1", "fit --learner multinomial-nb --target y>1", "fit --learner pca --drop y",
	} {
		code, _, stderr := program.Try(append(strings.Fields(line), "--data", file)...)
		if code != cli.ExitConfig || !strings.Contains(stderr, `"big"`) || !strings.Contains(stderr, "leave it out: see --drop") || strings.Contains(stderr, "json") {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

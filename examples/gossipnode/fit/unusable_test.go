package fit

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
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

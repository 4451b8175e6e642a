package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/search"
)

const (
	journalVersion = 1
	maxJournal     = 64 << 20
	modelsSuffix   = ".models"
)

// journal is what is known of a search, in a file that is written whole; models lie in a folder beside it.
type journal struct {
	Version int             `json:"version"`
	Search  string          `json:"search"` // its digest
	Results []search.Result `json:"results"`
}

// resumed reads what is known of a search. A model that is missing or spoilt counts as lost: its trial is trained again from an earlier one.
func (s *sought) resumed(path string, warn func(string)) (results []search.Result, models map[search.Held][]byte, err error) {
	text, err := files.Read(path, maxJournal)
	if err != nil {
		return nil, nil, err
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, nil, fmt.Errorf("%s is no journal of a search, or is cut off (%w): move it away to begin anew, or give the right one", path, err)
	}
	switch {
	case j.Version != journalVersion:
		return nil, nil, fmt.Errorf("%s is a journal of version %d, and this build reads version %d", path, j.Version, journalVersion)
	case j.Search != s.digest():
		return nil, nil, fmt.Errorf("%s is the journal of another search: give the file of that one, as it was, or another --journal", path)
	}
	block, err := search.Report{Member: "the journal", Results: j.Results}.Encode()
	if err == nil {
		_, err = s.config.Meet([][]byte{block})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s has what this search cannot have (%w): move it away to begin anew", path, err)
	}
	models = map[search.Held][]byte{}
	for _, r := range j.Results {
		if r.Model == "" {
			continue
		}
		held := search.Held{Trial: r.Trial, Steps: r.Steps}
		model, err := files.Read(modelPath(path, held), search.MaxModel)
		if err == nil && hashOf(model) == r.Model {
			models[held] = model
		} else if !errors.Is(err, fs.ErrNotExist) {
			warn(fmt.Sprintf("%s is not the model that the journal says, and is not used: trial %d goes on from an earlier one", modelPath(path, held), r.Trial))
		}
	}
	return j.Results, models, nil
}

func modelPath(journal string, h search.Held) string {
	return filepath.Join(journal+modelsSuffix, fmt.Sprintf("trial-%d-%d.safetensors", h.Trial, h.Steps))
}

// record writes the models that are not in the folder as it was written or read by this member, and then what is known. A file
// that is there may be of a search before, or spoilt: models of a search are alike in size.
func (s *sought) record(path string, results []search.Result, models map[search.Held][]byte, safe map[search.Held]bool) error {
	if err := os.MkdirAll(path+modelsSuffix, 0o755); err != nil {
		return err
	}
	for held, model := range models {
		if safe[held] {
			continue
		}
		if err := files.Replace(modelPath(path, held), 0o644, files.Text(model)); err != nil {
			return err
		}
		safe[held] = true
	}
	text, err := json.Marshal(journal{journalVersion, s.digest(), results})
	if err != nil {
		return err
	}
	return files.Replace(path, 0o644, files.Text(append(text, '\n')))
}

// journalFault is an error if the journal is not as --resume says.
func journalFault(path string, resume bool) error {
	_, err := os.Stat(path)
	switch {
	case path == "" && resume:
		return cli.Faultf("resume", "needs --journal, the file to go on from")
	case path == "" || resume && err == nil || !resume && errors.Is(err, fs.ErrNotExist):
		return nil
	case resume && errors.Is(err, fs.ErrNotExist):
		return cli.Faultf("resume", "there is no %s: leave it out to begin anew", path)
	case err == nil:
		return cli.Faultf("journal", "%s is there already: give --resume to go on with it, or another name", path)
	}
	return cli.Faultf("journal", "%v", err)
}

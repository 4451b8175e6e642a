package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names in a folder of pictures.
const (
	trainFolder   = "train"
	heldOutFolder = "test"
)

// contents is what a folder of pictures holds.
type contents struct {
	train, heldOut source
	// classes is the number of classes if the format tells it, otherwise 0.
	classes int
}

// detect finds out which format the files of a folder have, for a set with that many classes if they are known. The
// error is a *DataError. It has the remedy if files are missing.
func detect(dir string, classes int, remedy string) (contents, error) {
	var found []contents
	for _, look := range []func(string, int) (contents, error){findBatches, findShards, findFolders} {
		c, err := look(dir, classes)
		if err != nil {
			return contents{}, err
		}
		if c.train == nil && c.heldOut == nil {
			continue
		}
		if c.train == nil || c.heldOut == nil {
			return contents{}, &DataError{Path: dir, Err: fmt.Errorf("%w: files of both sets, training and test: %s; %s", ErrMissing, wanted, remedy)}
		}
		found = append(found, c)
	}
	switch len(found) {
	case 0:
		return contents{}, &DataError{Path: dir, Err: fmt.Errorf("%w: %s; %s", ErrMissing, wanted, remedy)}
	case 1:
		return found[0], nil
	}
	return contents{}, &DataError{Path: dir, Err: fmt.Errorf("%w: keep one of them there", ErrUnclear)}
}

const wanted = "want data_batch_*.bin and test_batch*.bin, or train.bin and test.bin, or train*.tar[.gz] and test*.tar[.gz], or train/CLASS/*.jpg and test/CLASS/*.jpg (or .png)"

// findBatches looks for files of CIFAR-10 and CIFAR-100, the set of so many classes first, and where their archives unpack to.
func findBatches(dir string, classes int) (c contents, err error) {
	forms := cifarForms()
	if i := slices.IndexFunc(forms, func(f cifarForm) bool { return f.classes == classes }); i > 0 {
		forms[0], forms[i] = forms[i], forms[0]
	}
	for _, form := range forms {
		batches := func(paths []string) source { return cifarBatches{form, paths} }
		for _, folder := range []string{dir, filepath.Join(dir, form.folder)} {
			c, err = findFiles(folder, form.train, form.heldOut, batches, ".bin")
			if err != nil || c.train != nil || c.heldOut != nil {
				c.classes = form.classes
				return c, err
			}
		}
	}
	return c, nil
}

func findShards(dir string, _ int) (contents, error) {
	archives := func(paths []string) source { return shards{paths} }
	return findFiles(dir, trainFolder, heldOutFolder, archives, ".tar", ".tar.gz", ".tgz")
}

// findFiles looks for files with these suffixes. The names of training files begin with
// train, and those of held-out files with heldOut.
func findFiles(
	dir, train, heldOut string, open func(paths []string) source, suffixes ...string,
) (c contents, err error) {
	for _, set := range []struct {
		prefix string
		source *source
	}{{train, &c.train}, {heldOut, &c.heldOut}} {
		paths, err := match(dir, set.prefix, suffixes)
		if err != nil {
			return contents{}, err
		}
		if len(paths) > 0 {
			*set.source = open(paths)
		}
	}
	return c, nil
}

func findFolders(dir string, _ int) (c contents, err error) {
	train, heldOut := filepath.Join(dir, trainFolder), filepath.Join(dir, heldOutFolder)
	if isFolder(heldOut) {
		c.heldOut = &classFolders{root: heldOut}
	}
	if !isFolder(train) {
		return c, nil
	}
	classes, err := classesOf(train)
	if err != nil {
		return contents{}, err
	}
	if c.train, err = newClassFolders(train, classes); err != nil {
		return contents{}, err
	}
	c.classes = len(classes)
	if c.heldOut != nil {
		c.heldOut, err = newClassFolders(heldOut, classes)
	}
	return c, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// match lists the files of a folder with this prefix and one of these suffixes, sorted.
// It returns none if the folder is missing.
func match(dir, prefix string, suffixes []string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &DataError{Path: dir, Err: err}
	}
	var paths []string
	for _, e := range entries {
		named := func(suffix string) bool { return strings.HasSuffix(e.Name(), suffix) }
		if !e.IsDir() && strings.HasPrefix(e.Name(), prefix) && slices.ContainsFunc(suffixes, named) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) > MaxFiles {
		return nil, &DataError{Path: dir, Err: fmt.Errorf("%w: %d files, want at most %d", ErrTooLarge, len(paths), MaxFiles)}
	}
	return paths, nil
}

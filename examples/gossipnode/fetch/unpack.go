package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxUnpacked bounds what an archive unpacks to, what is not wanted included.
const maxUnpacked = 1 << 30

// unpack takes the members of a set from its archive, which is verified, into the
// folder, and removes the archive. Nothing else in it is written anywhere.
func (f *fetcher) unpack(ctx context.Context, set publicSet) error {
	path := filepath.Join(f.dir, set.files[0].name)
	if err := f.unpackFrom(ctx, path, set); err != nil {
		return fmt.Errorf("unpacking %s: %w", path, err)
	}
	return remove(path)
}

func (f *fetcher) unpackFrom(ctx context.Context, path string, set publicSet) error {
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	unzipped, err := gzip.NewReader(untilDone{ctx, archive})
	if err != nil {
		return err
	}
	wanted := make(map[string]publicFile)
	for _, member := range set.members {
		wanted[set.folder+"/"+member.name] = member
	}
	members := tar.NewReader(io.LimitReader(unzipped, maxUnpacked))
	for len(wanted) > 0 {
		header, err := members.Next()
		if err == io.EOF {
			return fmt.Errorf("%d of %d files are not in it", len(wanted), len(set.members))
		}
		if err != nil {
			return err
		}
		member, ok := wanted[header.Name]
		if !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		delete(wanted, header.Name)
		if err := f.unpackMember(members, header.Size, member); err != nil {
			return err
		}
	}
	return nil
}

// unpackMember writes one file, and gives it its name once it is verified. Its path
// is of our making, not of the archive's.
func (f *fetcher) unpackMember(from io.Reader, size int64, member publicFile) error {
	if size != member.size {
		return fmt.Errorf("%s has %d bytes there, want %d", member.name, size, member.size)
	}
	path := filepath.Join(f.dir, member.name)
	out, err := os.Create(path + partSuffix)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.CopyN(io.MultiWriter(out, hash), from, size)
	err = errors.Join(err, out.Close())
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != member.sum {
		err = fmt.Errorf("the SHA-256 of %s is not %s", member.name, member.sum)
	}
	if err == nil {
		err = os.Rename(path+partSuffix, path)
	}
	if err != nil {
		return errors.Join(err, remove(path+partSuffix))
	}
	f.tell(path + " is there and verified")
	return nil
}

// remove removes a file, which need not be there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

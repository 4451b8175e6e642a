package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
)

// maxUnpacked bounds the unpacked size of an archive, including unwanted members.
const maxUnpacked = 1 << 30

// unpack extracts the members of a set from its verified archive into the folder, and removes the archive. It writes
// no other file.
func unpack(ctx context.Context, f *fetcher, set publicSet) error {
	path := filepath.Join(f.dir, set.files[0].Name)
	if err := unpackFrom(ctx, f, path, set); err != nil {
		return fmt.Errorf("unpacking %s: %w", path, err)
	}
	return files.Remove(path)
}

func unpackFrom(ctx context.Context, f *fetcher, path string, set publicSet) error {
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
		wanted[set.folder+"/"+member.Name] = member
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
		if err := unpackMember(f, members, header.Size, member); err != nil {
			return err
		}
	}
	return nil
}

// unpackMember writes one file, verifies it, and gives it its name. This package chooses the path, not the archive.
func unpackMember(f *fetcher, from io.Reader, size int64, member publicFile) error {
	if size != member.Bytes {
		return fmt.Errorf("%s has %d bytes there, want %d", member.Name, size, member.Bytes)
	}
	path := filepath.Join(f.dir, member.Name)
	err := files.Replace(path, 0o644, func(out io.Writer) error {
		hash := sha256.New()
		_, err := io.CopyN(io.MultiWriter(out, hash), from, size)
		if err == nil && hex.EncodeToString(hash.Sum(nil)) != member.SHA256 {
			err = fmt.Errorf("the SHA-256 of %s is not %s", member.Name, member.SHA256)
		}
		return err
	})
	if err != nil {
		return err
	}
	f.tell(path + " is there and verified")
	return nil
}

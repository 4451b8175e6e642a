package rows

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// alike suggests a column with a similar name.
func alike(name string, schema *table.Schema) string {
	if near, ok := cli.Nearest(name, schema.Names()); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// unlearnable are errors in --data, --target and settings, which another start does not repair.
var unlearnable = []error{
	read.ErrEncoding, read.ErrSeparator, table.ErrTooLarge, learn.ErrNoRows, learn.ErrRating, learn.ErrUserShared, learn.ErrSingular, learn.ErrSettings, table.ErrNumbers,
	table.ErrNoColumn, table.ErrTargetKind, table.ErrNoTarget, table.ErrOneClass, table.ErrTooManyClasses, prepare.ErrNoValue,
}

// Remedied adds to an error of the library which flag to change.
func Remedied(err error) error {
	var (
		schema *table.SchemaError
		target *table.TargetError
		damage *read.DamageError
	)
	remedy := ""
	switch {
	case errors.Is(err, read.ErrEncoding):
		remedy = "say which encoding it has, such as --encoding windows-1252"
	case errors.Is(err, read.ErrSeparator):
		remedy = "say what does with --separator"
	case errors.Is(err, table.ErrTooLarge):
		remedy = "give fewer, or more with --memory; preparing them takes several times as much"
	case errors.As(err, &damage):
		remedy = "see --tolerance"
	case errors.As(err, &schema):
		remedy = "give all members --data of the same columns, and the same --categories and --numbers where kinds differ"
	case errors.Is(err, table.ErrOneClass), errors.As(err, &target):
		remedy = "change --target"
	case errors.Is(err, learn.ErrUserShared):
		remedy = "give --shard by=COLUMN, the column of --user"
	case errors.Is(err, prepare.ErrNoValue), errors.Is(err, table.ErrNumbers):
		remedy = "see --drop"
	case errors.Is(err, learn.ErrNoRows):
		remedy = "look at --data, --target and --split"
	}
	if remedy != "" && !strings.HasSuffix(err.Error(), ": "+remedy) { // else whoever opened the files has added it
		err = fmt.Errorf("%w: %s", err, remedy)
	}
	return cli.ConfigOf(err, unlearnable...)
}

// Package read makes sources of package table from files: CSV, TSV, JSON lines and Parquet, plain or compressed
// (gzip, zstd). Memory does not grow with the size of the file.
//
// Open reads the start of the files and infers the kinds of their columns; Table.Rows then returns the rows in
// batches, as often as it is called. A row that cannot be read (too few fields, a quote that is not closed, a text in
// a column of numbers) is left out and counted: see Table.Damaged. More such rows than Config.Tolerance end the pass
// with a *DamageError, which names file, line and column. A file that ends within its compressed data or its Parquet
// pages is always an error.
//
// The first Parquet file that a process opens replaces arrow-go's zstd decoder by one with bounded memory, in the
// whole process. A program that uses arrow-go from other goroutines should open a file here first.
package read

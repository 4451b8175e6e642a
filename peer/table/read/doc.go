// Package read makes sources of package table out of files: CSV, TSV, JSON lines and Parquet,
// plain or compressed (gzip, zstd), in memory that does not grow with the file.
//
// Open looks at the files and infers what their columns are; Table.Rows then gives the rows in
// batches, as often as it is asked. A row that cannot be read (too few fields, a quote that is
// not closed, a text in a column of numbers) is set aside, counted and told by
// Table.Damaged; more of them than Config.Tolerance end the pass with a *DamageError, which
// names file, line and column. A file that ends in the middle of its compressed data or of
// its Parquet pages is always an error.
//
// The first Parquet file that a process opens has arrow-go unpack zstd by a decoder with a bound, for whoever else
// reads by it too: who does so at that moment opens a file here first.
package read

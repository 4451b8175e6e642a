// Package read makes sources of package table out of files: CSV, TSV, JSON lines and Parquet,
// plain or compressed (gzip, zstd), in memory that does not grow with the file.
package read

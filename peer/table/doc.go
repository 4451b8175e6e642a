// Package table holds rows in columns, and the stages that prepare them for a model: fitted
// by sums over a flock, so that all members prepare their rows alike and no row leaves its
// member.
//
// A Source gives the rows of one member, a Batch at a time. A Stage is fitted on a Source
// and a Flock, and then transforms batches; a Pipeline is stages one after the other, and
// one file. Package read, below, makes Sources of files; package learn fits models.
package table

// Package archtest holds the architecture as a test: which package may import
// which, and what the pure packages below package peer may not do. Each rule
// carries its reason, which is what a person sees who breaks it.
//
// It reads the imports and the syntax of every file of the module, whatever its
// build constraints, and compiles nothing. It checks direct imports only; for a few
// packages TestLinked asks go list what they link in all. What takes types to find out is not
// its business. TestLinks follows the links of documents, and what comments name of docs.
//
// The rules are in rules_test.go. A new folder needs one there as soon as it
// imports another package of the module. DESIGN and docs/ARCHITECTURE.md say what
// the arrows are for.
package archtest

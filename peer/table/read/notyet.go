package read

import "errors"

var errNotYet = errors.New("reading tables is not built yet")

package peer

import "github.com/seed-97356399/murmuration/internal/wire"

// WireVersion is the version of the frames that peers speak. Those of one run must have
// the same; a peer of another is refused, and says so.
const WireVersion = wire.Version

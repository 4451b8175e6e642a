"""torchft's Lighthouse, as its README starts it."""

import os

os.execlp("torchft_lighthouse", "torchft_lighthouse", "--bind", "[::]:29510", "--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000")

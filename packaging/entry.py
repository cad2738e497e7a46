"""What the executable runs, as the wheel's `cogwork-server` does."""

import sys

from cogwork.server.main import main

sys.exit(main())

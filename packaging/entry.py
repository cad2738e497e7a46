"""Entry point of the executable, equivalent to the wheel's `cogwork-server`."""

import sys

if sys.argv[1:2] == ["front-process"]:
    from cogwork.front.main import main

    main()
else:
    from cogwork.server.main import run

    run()

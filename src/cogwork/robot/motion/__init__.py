"""Motion: records who moves each resource, and stops the motion.

`session_manager.py` is middleware that records which client moved a resource last (`claims.py`),
until the resource is stopped. If the client's heartbeats stop, `motion_stopper.py` stops the
resource (and the plan, if a motion service moves the resource); `session_stopper.py` tries again
until everything has stopped. `moving_methods.py` lists the methods that cause motion.
`emergency_stop` works without the event loop, for the watchdog.
"""

"""One running machine: its graph, its services, motion, video, jobs and status.

`machine.py` is the machine. `handler_table.py` builds the methods that the machine serves (the
methods of its resources, and its own methods in `services`) and the `middleware` around every call.
`motion` stops what a client moves when the client is lost. `video` shows cameras to WebRTC clients.
`jobs` calls methods on a schedule: a job is an operation like any other. `status` reports the state
of the machine. `hosts.py` has the interfaces to modules, processes, packages and remotes.

For a pose between two frames, `frame_system.py` reads the joint positions of the arms and gantries
on the path every time, but their kinematics only once. Services such as motion get resources and
poses through `resource/machine_access.py` when they are called, not when they are built.
"""

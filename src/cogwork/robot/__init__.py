"""One running machine: its graph, its services, motion, video, jobs and status.

`machine.py` is the machine. `handler_table.py` builds the methods that it serves: the services of
its resources, `services`, and the `middleware` around every call. `motion` stops what a client
moves when the client is lost. `video` shows cameras to WebRTC clients. `jobs` calls methods on a
schedule: a job is an operation like any other. `status` reports the state of the machine.
`hosts.py` has the interfaces to modules, processes, packages and remotes.

For a pose between two frames, `frame_system.py` asks the arms and gantries on the path for their
kinematics, once, and for their joint positions, every time. Services such as motion get resources
and poses through `resource/machine_access.py` when they are called, not when they are built.
"""

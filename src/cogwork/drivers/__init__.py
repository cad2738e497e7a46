"""The built-in models, one folder for each API, and `builtin_models.py`, which lists them.

To add a driver:

1. Write the class in `drivers/<api>/<model>.py`, as a subclass of the SDK's class for the API.
   Raise the exceptions of `core/errors.py`.
2. Describe its attributes in `drivers/<api>/attributes.py`. This file must not import the driver
   or its libraries: it is loaded to check every configuration.
3. Add a line to `builtin_models.py`. The class is imported when the first resource of the model
   is built.
4. Run the contract of the API on it in `tests/contract/api`, and unit tests in
   `tests/unit/drivers`.
5. Run `make docs` to add it to the reference of models, which consists of the attributes and their
   docstrings.

If `do_command` receives an unknown command, a driver raises InvalidRequest with a message that
names the supported commands.

A driver outside this repository follows the same steps, but imports from `cogwork.driver` and is
registered by the entry point `cogwork.models`, which `resource/registry.py` reads.

Drivers share three rules:

* The newest command controls a component that moves; the older command fails with Interrupted (see
  `mover.py` and `command_lock.py`).
* Positions of simulated components are computed as functions of time (see `joint_trajectory.py`),
  so no timer has to update them.
* Cameras and vision services pass frames, not encoded images (see `drivers/camera` and
  `drivers/vision`).
"""

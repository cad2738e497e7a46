"""Navigation services, which drive a base to saved locations around keepout zones.

`goal_executor.py` runs the newest goal: locate, plan, follow, and plan again if necessary.
`planning.py` finds paths around zones with A*. The model `builtin` follows them with a base and
a movement sensor (`base_vehicle.py`, `sensor_locator.py`), and `fake` with a simulated point.
"""

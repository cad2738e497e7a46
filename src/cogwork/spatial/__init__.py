"""Spatial math: poses, orientations, kinematic chains and the frame tree.

The frames of the configuration form a tree (`frame_tree.py`, pure), which is kept until the
configuration changes. `inverse_kinematics.py` solves for joint positions by damped least squares
with the Jacobian.
"""

"""Spatial math: poses, orientations, kinematic chains and the frame tree."""

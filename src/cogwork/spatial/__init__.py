"""Frames of reference: where things are, how they are turned, how joints move them."""

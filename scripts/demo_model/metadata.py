"""Metadata of the exported files."""

from scripts.demo_model.data import LABELS

NAME = "conveyor"
AUTHOR = "The Cogwork developers"
DESCRIPTION = "Finds gears, bolts and nuts on the conveyor that Cogwork's fake camera sees."
LABELS_TEXT = "".join(f"{label}\n" for label in LABELS)

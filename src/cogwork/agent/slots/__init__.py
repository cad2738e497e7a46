"""Slots: installed versions side by side, one of which is current."""

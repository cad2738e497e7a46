"""Slots: versions that are installed side by side. One slot of each product is current."""

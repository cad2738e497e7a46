"""Peers, addresses, listening sockets, host names and downloads, with the standard library only."""

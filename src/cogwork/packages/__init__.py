"""Packages: versioned directories of files, which the machine gets from elsewhere."""

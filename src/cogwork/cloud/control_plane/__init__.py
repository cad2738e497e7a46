"""Every service of the cloud over one set of stores, and what keeps the stores usable."""

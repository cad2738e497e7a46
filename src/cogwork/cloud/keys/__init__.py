"""The keys of the cloud itself, and the tokens and secrets that depend on them."""

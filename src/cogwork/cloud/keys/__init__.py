"""The keys of the cloud itself, and what is signed and sealed with them."""

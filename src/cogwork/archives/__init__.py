"""Reading and unpacking of untrusted archives."""

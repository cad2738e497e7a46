"""Archives from others: read and unpacked without trusting them."""

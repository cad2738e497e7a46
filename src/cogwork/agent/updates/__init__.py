"""Updates: which versions the machine should have, and how it gets them."""

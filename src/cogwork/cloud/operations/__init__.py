"""What an operation of the cloud is, and how it runs."""

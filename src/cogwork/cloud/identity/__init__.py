"""Who calls the cloud, and what they may do."""

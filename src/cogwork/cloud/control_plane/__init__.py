"""The control plane: all services of the cloud, and the maintenance of its stores."""

"""The registry: modules, ML models and other packages, with their versions and archives."""

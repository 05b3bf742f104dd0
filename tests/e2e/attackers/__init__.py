"""Tools for `attacks.yaml`."""

"""The tools of the scenarios: the service finds them in this folder."""

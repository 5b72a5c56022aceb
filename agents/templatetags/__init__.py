"""Tags of the agents' pages."""

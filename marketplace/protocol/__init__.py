"""The wire format of skills, lists and triggers: pure, without network, clock or Django."""

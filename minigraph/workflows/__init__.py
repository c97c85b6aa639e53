"""The workflows: each is one file of wiring over functions that are handed in."""

"""The exercises of the course, one module a notebook; minigraph.checks loads a module when its topic is asked for."""

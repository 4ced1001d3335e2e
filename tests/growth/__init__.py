"""Growth: the cost of what reads bytes from outside grows no faster than their number."""

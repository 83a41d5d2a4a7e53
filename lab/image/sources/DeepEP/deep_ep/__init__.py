"""STAND-IN of the epready lab."""
STAND_IN = True

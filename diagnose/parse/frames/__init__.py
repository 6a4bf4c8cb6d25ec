"""Tracebacks: frames, remains of cut-off ones, the phase and activity that they show."""

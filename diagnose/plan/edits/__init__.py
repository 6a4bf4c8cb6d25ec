"""A knob and its new value to edits of the user's own files, in the framework's own keys."""

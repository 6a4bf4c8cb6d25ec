"""Turn changed knobs into edits of the user's own files, in the keys and spelling of the framework."""
